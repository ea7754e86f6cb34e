package measure

import (
	"math"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/result"
	"ordeal/controller/spec"
	"ordeal/metrics"
)

// loadWorld is a load of a target that answers so many calls a second after so
// many milliseconds each.
type loadWorld struct {
	spec    *spec.Spec
	rate    int64 // arrivals per second; 0: closed loop
	serves  int64 // answers per second at most
	seconds int   // of arrivals
	ms      int64 // latency of a call that does not wait
	fails   int64 // of the calls of every second
	cap     int64 // calls in flight at most; 0 = no limit
	gen     wire.Generator
}

func (w *loadWorld) run(t *testing.T) (result.LoadLevel, []result.Check, *merge.Stage) {
	t.Helper()
	s := spec.Default()
	s.TargetText, s.Load = "http://127.0.0.1:1/mcp", spec.DefaultLoad()
	s.Load.Duration, s.Load.WarmupTime, s.MaxInFlight = time.Duration(w.seconds)*time.Second, time.Second, int(w.cap)
	if s.MaxInFlight == 0 {
		s.MaxInFlight = 1000
	}
	if s.Load.Rate = float64(w.rate); w.rate == 0 {
		s.Load.Concurrency = 4
	}
	if w.spec != nil {
		s.Load.SLO = w.spec.Load.SLO
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	w.spec = &s
	tally, open := metrics.NewTally(), int64(0)
	periods := make([]metrics.Period, w.seconds+2)
	for i := range periods {
		p := &periods[i]
		if i < w.seconds {
			p.Scheduled = w.rate
			p.Sent = w.rate
			if w.rate == 0 {
				p.Sent = w.serves
			}
			if w.cap > 0 {
				p.Sent = min(p.Sent, w.cap-open+w.serves)
			}
			p.Dropped = max(0, p.Scheduled-p.Sent)
		}
		open += p.Sent
		p.Completed = min(open, w.serves)
		p.Succeeded = max(0, p.Completed-w.fails)
		open -= p.Completed
		if i < 1 {
			continue
		}
		for k := range p.Sent {
			x := metrics.Exchange{Outcome: metrics.OK, Delivered: true, Latency: time.Duration(w.ms) * time.Millisecond}
			if k < w.fails {
				x.Outcome = metrics.ServerError
			}
			tally.Add(&x, 1)
			if x.Ok() {
				p.Latency.Record(w.ms * 1000)
			}
		}
		tally.Window.Merge(metrics.Window{Scheduled: p.Scheduled, Sent: p.Sent, Dropped: p.Dropped})
	}
	var m merge.Merger
	st := m.Stage("load", "load", 4, []merge.Planned{{Unit: "u", Operations: 1}})
	m.Add(&wire.Result{Stage: "load", Unit: "u", Agent: "a", Incarnation: 1, Final: true, Tally: tally, Periods: periods, Period: time.Second, Generator: w.gen,
		Calls: tally.Calls()})
	st.Took(time.Second)
	lv, checks := LoadLevel(&s, st, plan.Level{})
	return lv, checks, st
}

func number(t *testing.T, m metrics.Measured) float64 {
	t.Helper()
	v, ok := m.Number()
	if !ok {
		t.Fatalf("%+v is no number", m)
	}
	return v
}

func TestRateIsSustained(t *testing.T) {
	lv, checks, _ := (&loadWorld{rate: 100, serves: 200, seconds: 11, ms: 5}).run(t)
	if lv.Sustained == nil || !*lv.Sustained || number(t, lv.Achieved) != 100 || number(t, lv.Offered) != 100 || lv.Met != nil || len(checks) != 1 {
		t.Errorf("%+v, %+v: want 100 of 100", lv, checks)
	}
	if lv.Scheduled != 1000 {
		t.Errorf("%d arrivals in the tally, want the 1000 after the warm-up", lv.Scheduled)
	}
}

// TestRateIsNotSustained: a target that serves 50 a second is asked for 100, with
// and without a limit of calls in flight.
func TestRateIsNotSustained(t *testing.T) {
	for _, limit := range []int64{0, 50} {
		lv, _, _ := (&loadWorld{rate: 100, serves: 50, seconds: 11, ms: 5, cap: limit}).run(t)
		if lv.Sustained == nil || *lv.Sustained || math.Abs(number(t, lv.Achieved)-50) > 0.01 || lv.Met == nil || *lv.Met {
			t.Errorf("limit %d: %+v, want it not sustained", limit, lv)
		}
		if !strings.HasPrefix(lv.Why, "rate not sustained: 50 of 100 calls/s") {
			t.Errorf("limit %d: %q", limit, lv.Why)
		}
		if limit > 0 && !strings.Contains(lv.Why, "arrivals were dropped at the limit of 50 calls in flight") {
			t.Errorf("limit %d: %q does not say what was dropped", limit, lv.Why)
		}
	}
	// Two more than it serves, of a hundred: the calls in flight creep up.
	lv, _, _ := (&loadWorld{rate: 102, serves: 100, seconds: 31, ms: 5}).run(t)
	if lv.Sustained == nil || *lv.Sustained {
		t.Errorf("%+v, want it not sustained", lv)
	}
}

func TestGeneratorIsTheLimit(t *testing.T) {
	lv, _, st := (&loadWorld{rate: 100, serves: 50, seconds: 11, ms: 5, gen: wire.Generator{Saturated: true, Reason: "no CPU left", Short: 2.2}}).run(t)
	if lv.Met != nil || lv.Why != "generator-limited, target not judged: no CPU left" || lv.Generator.MoreAgents != 2 {
		t.Errorf("%+v with %d agents, want no verdict and 2 more agents", lv, len(st.Agents))
	}
}

// TestLateButMet: lateness adds to a latency that counts from the due time, so an
// objective that was met even so was met; without one, or in a closed loop, our own
// limit leaves no judgement.
func TestLateButMet(t *testing.T) {
	late := wire.Generator{Saturated: true, Reason: "woke up late"}
	within := &spec.Spec{Load: &spec.Load{SLO: "p95<50ms,error_rate<1%"}}
	beyond := &spec.Spec{Load: &spec.Load{SLO: "p95<2ms,error_rate<1%"}}
	for _, tt := range []struct {
		name   string
		world  loadWorld
		judged bool
	}{
		{"Met", loadWorld{rate: 100, serves: 200, seconds: 11, ms: 5, gen: late, spec: within}, true},
		{"Missed", loadWorld{rate: 100, serves: 200, seconds: 11, ms: 5, gen: late, spec: beyond}, false},
		{"NotSustained", loadWorld{rate: 100, serves: 50, seconds: 11, ms: 5, gen: late, spec: within}, false},
		{"NoObjective", loadWorld{rate: 100, serves: 200, seconds: 11, ms: 5, gen: late}, false},
		{"ClosedLoop", loadWorld{serves: 80, seconds: 11, ms: 5, gen: late, spec: within}, false},
	} {
		lv, _, _ := tt.world.run(t)
		if judged := lv.Met != nil && *lv.Met; judged != tt.judged || !lv.Generator.Saturated {
			t.Errorf("%s: %+v, want it judged: %v", tt.name, lv, tt.judged)
		}
		if _, shown := lv.P50.Number(); shown != tt.judged {
			t.Errorf("%s: p50 %+v", tt.name, lv.P50)
		}
	}
}

func TestClosedLoopHasNoRateToSustain(t *testing.T) {
	lv, checks, _ := (&loadWorld{serves: 80, seconds: 11, ms: 5}).run(t)
	if lv.Sustained != nil || len(checks) != 0 || number(t, lv.Achieved) != 80 || lv.Offered.Value != nil {
		t.Errorf("%+v", lv)
	}
}

func TestAskedAt(t *testing.T) {
	profile := []result.LoadRamp{{ForS: 10, To: 100}, {ForS: 5, From: 50, To: 50}}
	for _, tt := range []struct{ at, length, want float64 }{{0, 1, 5}, {9, 1, 95}, {9.5, 1, (0.5*97.5 + 0.5*50)}, {14, 1, 50}, {15, 1, 0}, {0, 15, (500 + 250) / 15.0}} {
		if got := askedAt(profile, time.Duration(tt.at*1e9), time.Duration(tt.length*1e9)); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%v s from %v: %v, want %v", tt.length, tt.at, got, tt.want)
		}
	}
}
