package spec

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/slo"
)

// Load is what a load test sends. Either callers that wait for their answers
// (closed loop), or arrivals that do not (open loop).
type Load struct {
	Concurrency int     `json:"concurrency,omitempty"` // closed loop: callers
	Rate        float64 `json:"rate,omitempty"`        // open loop: arrivals per second
	Poisson     bool    `json:"poisson,omitempty"`
	Requests    int64   `json:"requests,omitempty"` // in place of Duration
	// Duration of a constant load, warm-up included; of each level of a search.
	Duration time.Duration `json:"duration,omitempty"`
	Stages   string        `json:"stages,omitempty"` // as written, see ParseStages
	// WarmupTime is cut off the start; below 0: a tenth of a constant load's
	// duration, at most MaxWarmup, and nothing of any other.
	WarmupTime time.Duration  `json:"warmup_time"`
	Think      time.Duration  `json:"think,omitempty"`
	SLO        string         `json:"slo,omitempty"`
	Knee       *Knee          `json:"knee,omitempty"`
	Workload   *wire.Workload `json:"workload,omitempty"`
	Processes  int            `json:"processes,omitempty"`
	// CheckOutput holds every answer against the tool's outputSchema, which costs more
	// than the call.
	CheckOutput bool `json:"check_output,omitempty"`

	Profile []wire.Ramp `json:"profile,omitempty"` // derived from Stages
	Open    bool        `json:"open"`              // derived
}

// Knee is a search for the highest arrival rate that meets the SLO.
type Knee struct {
	From          float64 `json:"from"`          // arrivals per second to begin with
	To            float64 `json:"to"`            // not searched beyond
	Precision     float64 `json:"precision"`     // ends the search: width of the interval over the rate
	Confirmations int     `json:"confirmations"` // runs of twice the duration at the rate found
}

// Bounds of a load.
const (
	MaxWarmup      = 10 * time.Second
	maxCallers     = 100_000
	maxLoad        = 24 * time.Hour * 7
	defaultLoad    = 10 * time.Second
	warmupShare    = 10
	kneeLevels     = 80 // at most, see Levels of plan
	maxStages      = 100
	loadStartLimit = time.Minute
)

// DefaultLoad is a load with every default.
func DefaultLoad() *Load { return &Load{WarmupTime: -1, Processes: 1} }

// DefaultKnee begins low: a target that breaks is not to break at once.
func DefaultKnee() Knee { return Knee{From: 10, To: 100_000, Precision: 0.02, Confirmations: 3} }

// ParseStages reads the course of a load: a comma list of DURATION:LEVEL, which
// goes from the level before in a straight line, or DURATION:=LEVEL, which stays
// at one. Before the first stage the level is 0. LEVEL is a number of callers, or
// with /s of arrivals per second; one list has only one of them.
func ParseStages(text string) (ramps []wire.Ramp, open bool, err error) {
	parts := strings.Split(text, ",")
	if len(parts) > maxStages {
		return nil, false, fmt.Errorf("--stages has %d stages: want at most %d", len(parts), maxStages)
	}
	level, told := int64(0), false
	for i, part := range parts {
		r, rate, err := parseStage(strings.TrimSpace(part), level)
		if err != nil {
			return nil, false, fmt.Errorf("--stages: stage %d, %.40q: %w; want for example 30s:10,2m:200,30s:0 in callers, or 30s:=50/s in arrivals per second", i+1, part, err)
		}
		if r.To != 0 || rate { // 0 is either
			if told && rate != open {
				return nil, false, fmt.Errorf("--stages: stage %d, %.40q: callers and arrivals per second (/s) cannot be mixed", i+1, part)
			}
			open, told = rate, true
		}
		ramps, level = append(ramps, r), r.To
	}
	if open {
		return ramps, true, peakWithin(ramps, 1e9)
	}
	return ramps, false, peakWithin(ramps, maxCallers)
}

func peakWithin(ramps []wire.Ramp, most int64) error {
	switch p := peak(ramps); {
	case p == 0:
		return errors.New("--stages never leaves 0: give at least one stage a level")
	case p > most:
		return fmt.Errorf("--stages goes up to %d: want at most %d callers, or 1000000/s", p, most)
	}
	return nil
}

func peak(ramps []wire.Ramp) (most int64) {
	for _, r := range ramps {
		most = max(most, r.From, r.To)
	}
	return most
}

func parseStage(text string, before int64) (r wire.Ramp, rate bool, err error) {
	length, level, found := strings.Cut(text, ":")
	if !found {
		return r, false, errors.New("has no colon")
	}
	if r.For, err = time.ParseDuration(length); err != nil || r.For <= 0 || r.For > maxLoad {
		return r, false, fmt.Errorf("%.20q is no duration above 0 and up to 168h", length)
	}
	level, flat := strings.CutPrefix(level, "=")
	level, rate = strings.CutSuffix(level, "/s")
	if rate {
		v, err := strconv.ParseFloat(level, 64)
		if err != nil || !(v >= 0 && v <= 1e6) {
			return r, true, fmt.Errorf("%.20q is no rate from 0 to 1000000", level)
		}
		r.To = int64(math.Round(v * 1000))
	} else {
		n, err := strconv.ParseInt(level, 10, 64)
		if err != nil || n < 0 {
			return r, false, fmt.Errorf("%.20q is no number of callers", level)
		}
		r.To = n
	}
	if r.From = before; flat {
		r.From = r.To
	}
	return r, rate, nil
}

// Shown is the load as a report shows it: the rows of feeders, which may be
// credentials of users, stay out, and a digest of them tells two apart.
func (l *Load) Shown() *Load {
	if l == nil || l.Workload == nil {
		return l
	}
	shown, mix := *l, *l.Workload
	mix.Feeders = nil
	for _, f := range l.Workload.Feeders {
		raw, err := json.Marshal(f.Rows)
		if err != nil {
			panic("spec: rows of a feeder that were read: " + err.Error())
		}
		sum := sha256.Sum256(raw)
		f.Digest = fmt.Sprintf("%d rows, sha256 %x", len(f.Rows), sum[:8])
		f.Rows = nil
		mix.Feeders = append(mix.Feeders, f)
	}
	shown.Workload = &mix
	return &shown
}

// Length of the load, 0 when a number of requests ends it.
func (l *Load) Length() (d time.Duration) {
	if l.Requests > 0 {
		return 0
	}
	if len(l.Profile) == 0 {
		return l.Duration
	}
	for _, r := range l.Profile {
		d += r.For
	}
	return d
}

// Peak is the highest level: callers, or thousandths of an arrival per second.
func (l *Load) Peak() int64 {
	switch {
	case len(l.Profile) > 0:
		return peak(l.Profile)
	case l.Open:
		return int64(math.Round(l.Rate * 1000))
	}
	return int64(l.Concurrency)
}

// Objectives are those of the SLO, none without one.
func (l *Load) Objectives() []slo.Objective {
	if l.SLO == "" {
		return nil
	}
	all, err := slo.Parse(l.SLO)
	if err != nil {
		panic("spec: an SLO that was validated: " + err.Error())
	}
	return all
}

// TimeoutFlag names the flag that sets ScanTimeout.
func (s *Spec) TimeoutFlag() string {
	if s.Load != nil {
		return "time-limit"
	}
	return "scan-timeout"
}

// fillLoad checks the load and puts what it comes to where the rest of a run
// looks for it.
func (s *Spec) fillLoad() error {
	err := s.validateLoad()
	l := s.Load
	s.Probes, s.Phases = []string{"load"}, []string{"load"}
	s.Target.Processes = l.Processes
	if s.Concurrency = 1; !l.Open {
		s.Concurrency = int(l.Peak())
	}
	s.Rate = 0
	if l.Open {
		s.Rate = float64(l.Peak()) / 1000
	}
	if s.ScanTimeout == 0 {
		s.ScanTimeout = s.loadTimeout()
	}
	return err
}

// validateLoad checks what a load test asks for.
func (s *Spec) validateLoad() error {
	l := s.Load
	var problems []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	problems = append(problems, l.shape())
	if l.SLO != "" {
		if _, err := slo.Parse(l.SLO); err != nil {
			problems = append(problems, fmt.Errorf("--slo: %w", err))
		}
	}
	must(l.Concurrency >= 0 && l.Concurrency <= maxCallers, "--concurrency is %d: want 1 to %d", l.Concurrency, maxCallers)
	must(l.Rate >= 0 && l.Rate <= 1e6, "--rate is %g: want 0.001 to 1000000 arrivals per second", l.Rate)
	must(l.Rate == 0 || l.Rate >= 0.001, "--rate is %g: the lowest rate is 0.001 arrivals per second", l.Rate)
	must(l.Requests >= 0 && l.Requests <= 1e12, "--requests is %d: want 1 to 1000000000000", l.Requests)
	must(l.Duration >= 0 && l.Duration <= maxLoad, "--duration is %v: want more than 0, at most %v", l.Duration, maxLoad)
	must(l.Think >= 0 && l.Think <= time.Hour, "--think is %v: want 0 to 1h", l.Think)
	must(l.Think == 0 || !l.Open, "--think is for callers that wait for their answers: in an open loop arrivals come by their rate")
	must(!l.Poisson || l.Open, "--arrivals poisson is for an open loop: give --rate, or --stages in arrivals per second")
	must(l.WarmupTime < 0 || l.Length() == 0 || l.WarmupTime < l.Length(), "--warmup-time is %v, the whole load only %v", l.WarmupTime, l.Length())
	must(l.Processes >= 1 && l.Processes <= 256, "--processes is %d: want 1 to 256", l.Processes)
	must(l.Processes == 1 || s.Target.Transport == wire.Stdio, "--processes starts several servers of a stdio target, which %s is not", s.Target.URI)
	if l.Workload != nil {
		problems = append(problems, WorkloadFits(l.Workload, s.Target.Kind))
	}
	if k := l.Knee; k != nil {
		must(l.SLO != "", "--find-knee needs --slo: say what the load has to meet, such as p95<500ms,error_rate<1%%")
		must(k.From >= 0.001 && k.From <= k.To && k.To <= 1e6, "--knee-from is %g and --knee-to %g: want 0.001 to 1000000, the first at most the second", k.From, k.To)
		must(k.Precision >= 0.001 && k.Precision <= 0.5, "--knee-precision is %g: want 0.001 to 0.5", k.Precision)
		must(k.Confirmations >= 1 && k.Confirmations <= 20, "--confirmations is %d: want 1 to 20", k.Confirmations)
	}
	return errors.Join(problems...)
}

// shape says whether the loop is open, and refuses what does not go together.
func (l *Load) shape() error {
	var err error
	switch {
	case l.Knee != nil && (l.Stages != "" || l.Rate > 0 || l.Concurrency > 0 || l.Requests > 0):
		return errors.New("--find-knee chooses the arrival rates itself: leave out --rate, --concurrency, --requests and --stages; see --knee-from and --knee-to")
	case l.Stages != "" && (l.Rate > 0 || l.Concurrency > 0 || l.Requests > 0 || l.Duration > 0):
		return errors.New("--stages is the whole course of the load: leave out --rate, --concurrency, --requests and --duration")
	case l.Rate > 0 && l.Concurrency > 0:
		return errors.New("--rate is an open loop and --concurrency a closed one: give one of them; --max-in-flight bounds the calls of an open loop")
	case l.Requests > 0 && l.Duration > 0:
		return errors.New("--requests and --duration both end the load: give one of them")
	case l.Stages != "":
		if l.Profile, l.Open, err = ParseStages(l.Stages); err != nil {
			return err
		}
	default:
		l.Open = l.Rate > 0 || l.Knee != nil
	}
	if !l.Open && l.Concurrency == 0 && l.Stages == "" {
		l.Concurrency = 1
	}
	if l.Requests == 0 && l.Duration == 0 && l.Stages == "" {
		l.Duration = defaultLoad
	}
	if l.WarmupTime < 0 {
		l.WarmupTime = 0
		if l.Stages == "" {
			l.WarmupTime = min(wholePeriods(l.Duration), MaxWarmup)
		}
	}
	return nil
}

// wholePeriods is a tenth of a duration, rounded up to what the periods of a load of
// that length are parts of, so that warm-up and measured part share none.
func wholePeriods(d time.Duration) time.Duration {
	unit := time.Second
	if d < 10*time.Second {
		unit = 250 * time.Millisecond
	}
	return min((d/warmupShare+unit-1)/unit*unit, d/2)
}

// loadTimeout bounds a whole load test generously: what it lasts by plan, twice,
// and a call at the end of each level.
func (s *Spec) loadTimeout() time.Duration {
	l := s.Load
	perLevel := s.Timeout + loadStartLimit
	switch {
	case l.Requests > 0:
		return maxLoad
	case l.Knee != nil:
		return time.Duration(kneeLevels+2*l.Knee.Confirmations) * (l.Duration + perLevel)
	}
	return 2*l.Length() + perLevel + s.Target.StartTimeout
}
