package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"ordeal/controller/result"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// simulated is a load on a target with a fixed number of workers: what a fixture's
// numbers are made from, so that its tables, courses and histograms agree.
type simulated struct {
	model    string
	ramps    []result.LoadRamp
	warmup   float64
	period   float64
	workers  int                        // of the target
	inFlight int                        // most at once; 0 no bound
	service  func(r *rand.Rand) float64 // seconds
	freeze   [2]float64                 // nothing is answered between
	fails    func(r *rand.Rand) string  // outcome, ok for none
	slo      string                     // as it was asked for
	judged   func(lv *result.LoadLevel) // what the judge said of it
	stage    string                     // of the level
	late     func(r *rand.Rand) int64   // µs
	seed     uint64
}

// drawn is what came of a simulation.
type drawn struct {
	periods  []metrics.Period
	latency  metrics.Dist
	service  metrics.Dist
	late     metrics.Dist
	outcomes metrics.Counts
	sums     metrics.Period
	length   float64
}

func (s *simulated) level(at float64) float64 {
	begin := 0.0
	for _, r := range s.ramps {
		if at < begin+r.ForS {
			return r.From + (r.To-r.From)*(at-begin)/r.ForS
		}
		begin += r.ForS
	}
	return 0
}

func (s *simulated) run() drawn {
	rng := rand.New(rand.NewPCG(s.seed, 9))
	d := drawn{outcomes: metrics.Counts{}}
	for _, r := range s.ramps {
		d.length += r.ForS
	}
	if s.model == "open" {
		s.open(&d, rng)
	} else {
		s.closed(&d, rng)
	}
	return d
}

// open sends arrivals; each takes the worker that is free first.
func (s *simulated) open(d *drawn, rng *rand.Rand) {
	free := make([]float64, s.workers)
	var ends []float64
	for due := 0.0; due < d.length; {
		rate := s.level(due)
		if rate < 0.5 {
			due += 0.01
			continue
		}
		ends = slices.DeleteFunc(ends, func(end float64) bool { return end <= due })
		p := d.at(due, s.period)
		p.Scheduled++
		if s.inFlight > 0 && len(ends) >= s.inFlight {
			p.Dropped++
			s.measure(d, due, func(m *metrics.Period) { m.Scheduled++; m.Dropped++ })
		} else {
			k := slices.Index(free, slices.Min(free))
			begin := s.thaw(max(due, free[k]))
			end := s.thaw(begin + s.service(rng))
			free[k] = end
			ends = append(ends, end)
			p.Sent++
			p.InFlight = max(p.InFlight, int64(len(ends)))
			s.book(d, due, begin, end, rng)
			s.measure(d, due, func(m *metrics.Period) { m.Scheduled++; m.Sent++ })
		}
		due += 1 / rate
	}
}

// closed lets callers wait for their answers.
func (s *simulated) closed(d *drawn, rng *rand.Rand) {
	most := 0.0
	for _, r := range s.ramps {
		most = max(most, r.From, r.To)
	}
	next := make([]float64, int(most))
	free := make([]float64, s.workers)
	for {
		c := slices.Index(next, slices.Min(next))
		now := next[c]
		if now >= d.length {
			return
		}
		if float64(c) >= s.level(now) {
			next[c] = now + 0.05
			continue
		}
		k := slices.Index(free, slices.Min(free))
		begin := s.thaw(max(now, free[k]))
		end := s.thaw(begin + s.service(rng))
		free[k], next[c] = end, end
		p := d.at(now, s.period)
		p.Sent++
		p.Callers = max(p.Callers, int64(math.Ceil(s.level(now))))
		p.InFlight = p.Callers
		s.book(d, now, begin, end, rng)
		s.measure(d, now, func(m *metrics.Period) { m.Sent++ })
	}
}

func (s *simulated) thaw(at float64) float64 {
	if at >= s.freeze[0] && at < s.freeze[1] {
		return s.freeze[1]
	}
	return at
}

func (s *simulated) measure(d *drawn, due float64, add func(*metrics.Period)) {
	if due >= s.warmup {
		add(&d.sums)
	}
}

// book records a call that was due at one moment and answered at another.
func (s *simulated) book(d *drawn, due, begin, end float64, rng *rand.Rand) {
	outcome := metrics.OK
	if s.fails != nil {
		if err := outcome.UnmarshalText([]byte(s.fails(rng))); err != nil {
			panic(err)
		}
	}
	us := int64((end - due) * 1e6)
	p := d.at(due, s.period)
	if p.Outcomes == nil {
		p.Outcomes = metrics.Counts{}
	}
	p.Outcomes[outcome]++
	if s.late != nil {
		late := s.late(rng)
		p.Late.Record(late)
		d.late.Record(late)
	}
	answered := d.at(end, s.period)
	answered.Completed++
	if outcome == metrics.OK {
		d.at(due, s.period).Latency.Record(us)
		d.at(end, s.period).Succeeded++
	}
	if due < s.warmup {
		return
	}
	d.outcomes[outcome]++
	if outcome == metrics.OK {
		d.latency.Record(us)
		d.service.Record(int64((end - begin) * 1e6))
	}
}

func (d *drawn) at(t, period float64) *metrics.Period {
	i := int(t / period)
	for len(d.periods) <= i {
		d.periods = append(d.periods, metrics.Period{})
	}
	return &d.periods[i]
}

func percentile(d *metrics.Dist, q float64) metrics.Measured {
	if d.N() == 0 {
		return metrics.Measured{Unit: "s"}
	}
	m := metrics.Measured{Value: float64(d.Rank(stat.NearestRank(d.N(), q))) / 1e6, Unit: "s", N: d.N(), Interval: &metrics.Interval{Lo: 0, Hi: math.Inf(1)}}
	lo, hi, _ := stat.QuantileRanks(d.N(), q, 0.95)
	if lo > 0 {
		m.Interval.Lo = float64(d.Rank(lo)) / 1e6
	}
	if hi > 0 {
		m.Interval.Hi = float64(d.Rank(hi)) / 1e6
	}
	return m
}

func hdr(d *metrics.Dist) result.Histogram {
	data, err := d.HDR()
	if err != nil {
		panic(err)
	}
	return result.Histogram{Encoding: "hdr-v2-base64", Unit: "us", Data: data}
}

func named(c metrics.Counts) map[string]int64 {
	out := map[string]int64{}
	for o, n := range c {
		out[o.String()] = n
	}
	return out
}

// levelOf is the level of a simulation.
func (s *simulated) levelOf(d *drawn) result.LoadLevel {
	peak := 0.0
	for _, r := range s.ramps {
		peak = max(peak, r.From, r.To)
	}
	total, ok := int64(0), d.outcomes[metrics.OK]
	for o, n := range d.outcomes {
		if o.Measured() {
			total += n
		}
	}
	iv := stat.ClopperPearson(total-ok, max(total, 1), 0.95)
	var succeeded int64
	whole := int(d.length / s.period)
	for i := int(s.warmup / s.period); i < whole && i < len(d.periods); i++ {
		succeeded += d.periods[i].Succeeded
	}
	length := d.length - s.warmup
	lv := result.LoadLevel{Stage: cmp.Or(s.stage, "load"), Asked: peak, Achieved: num(float64(succeeded)/length, "/s", succeeded), Scheduled: d.sums.Scheduled, Sent: d.sums.Sent,
		Dropped: d.sums.Dropped, Outcomes: named(d.outcomes), P50: percentile(&d.latency, 0.5), P95: percentile(&d.latency, 0.95), P99: percentile(&d.latency, 0.99),
		ErrorRate: within(float64(total-ok)/float64(max(total, 1)), "rate", total, iv.Lo, iv.Hi), Generator: result.LoadGenerator{CPU: 0.31, GCPauseS: 0.0021}}
	if s.model == "open" {
		lv.Offered = num(float64(d.sums.Scheduled)/length, "/s", d.sums.Scheduled)
		lv.Sustained = ptr(true)
	}
	if d.late.N() > 0 {
		lv.Generator.LateP50, lv.Generator.LateP99 = ptr(float64(d.late.Quantile(500))/1e6), ptr(float64(d.late.Quantile(990))/1e6)
	}
	if s.judged != nil {
		s.judged(&lv)
	}
	return lv
}

// document of a simulation.
func (s *simulated) document() *result.Document {
	d := s.run()
	lv := s.levelOf(&d)
	l := &result.Load{Model: s.model, Profile: s.ramps, WarmupS: s.warmup, MeasuredS: d.length - s.warmup, SLO: s.slo, PeriodS: s.period, Levels: []result.LoadLevel{lv}}
	if s.model == "open" {
		l.Arrivals = "constant"
	}
	l.DrainS = max(0, math.Round((float64(len(d.periods))*s.period-d.length)*1e9)/1e9)
	for i := range d.periods {
		l.Periods = append(l.Periods, s.periodOf(&d.periods[i], float64(i)*s.period, d.length))
	}
	doc := &result.Document{SchemaVersion: 1, OrdealVersion: "0.3.0", Command: "load", Load: l, Checks: []result.Check{}, Breakdown: []result.Dimension{},
		Verdict: result.Verdict{Policy: "slo", Reasons: []string{}}, Caveats: []metrics.Caveat{}, Histograms: map[string]result.Histogram{},
		Target: result.Target{Kind: "mcp", URI: "http://127.0.0.1:8931/mcp", Name: "notes-server", Version: "1.4.2", Transport: "http", ProtocolVersion: "2025-06-18",
			Tool: "search_notes", ToolArgs: json.RawMessage(`{"query":"probe"}`), ToolArgsSource: "schema", Mutability: "read-only", Tools: 3}}
	doc.Run = result.Run{ID: "01J8LOAD", StartedAt: time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC), DurationS: d.length + 2, Seed: "7", Calls: d.outcomes.Total() + 40,
		Invocation: []string{"load", "http://127.0.0.1:8931/mcp"}, Spec: json.RawMessage(`{"target":"http://127.0.0.1:8931/mcp","max_in_flight":64,"timeout":"10s"}`)}
	doc.Probes = []result.Probe{{Name: "load", Phase: "load", Applicable: true, Metrics: s.metrics(&d, lv), Findings: []result.Finding{}, Summary: "measured"}}
	if d.latency.N() > 0 {
		doc.Histograms[lv.Stage+"/latency"] = hdr(&d.latency)
		doc.Histograms[lv.Stage+"/service"] = hdr(&d.service)
	}
	return doc
}

func (s *simulated) periodOf(p *metrics.Period, at, length float64) result.LoadPeriod {
	out := result.LoadPeriod{FromS: math.Round(at*1e6) / 1e6, Measured: at >= s.warmup-1e-9 && at+s.period <= length+1e-9, Asked: math.Round(s.level(at+s.period/2)*1e3) / 1e3, Scheduled: p.Scheduled,
		Sent: p.Sent, Dropped: p.Dropped, Completed: p.Completed, Succeeded: p.Succeeded, InFlight: p.InFlight, Callers: p.Callers, Outcomes: named(p.Outcomes)}
	if p.Late.N() > 0 {
		out.LateP99S = ptr(float64(p.Late.Quantile(990)) / 1e6)
	}
	if p.Latency.N() > 0 {
		out.Histogram = ptr(hdr(&p.Latency))
		q := func(permille int64) *float64 { return ptr(float64(p.Latency.Quantile(permille)) / 1e6) }
		out.P50S, out.P95S, out.P99S, out.MaxS = q(500), q(950), q(990), ptr(float64(p.Latency.Max())/1e6)
	}
	return out
}

func (s *simulated) metrics(d *drawn, lv result.LoadLevel) values {
	m := values{"requests": num(float64(d.outcomes.Total()), "count", d.outcomes.Total()), "p50_s": lv.P50, "p90_s": percentile(&d.latency, 0.9), "p95_s": lv.P95, "p99_s": lv.P99,
		"error_rate": lv.ErrorRate, "throughput_rps": lv.Achieved}
	if n := d.latency.N(); n > 0 {
		m["max_s"] = num(float64(d.latency.Max())/1e6, "s", n)
	}
	if s.model == "open" {
		m["service_p50_s"], m["service_p95_s"], m["service_p99_s"] = percentile(&d.service, 0.5), percentile(&d.service, 0.95), percentile(&d.service, 0.99)
	}
	return m
}

// lognormal times around a median.
func lognormal(median, sigma float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return median * math.Exp(sigma*r.NormFloat64()) }
}

func constant(level, length float64) []result.LoadRamp {
	return []result.LoadRamp{{ForS: length, From: level, To: level}}
}

func onTime(r *rand.Rand) int64 { return 9 + int64(math.Exp(2+1.2*r.NormFloat64())) }

// stalled is an open loop whose target holds every answer for two seconds.
func stalled() *result.Document {
	s := simulated{model: "open", ramps: constant(100, 30), warmup: 2, period: 0.5, workers: 40, service: lognormal(0.010, 0.25), freeze: [2]float64{12, 14}, slo: "p95<500ms,error_rate<1%",
		late: onTime, seed: 1, judged: func(lv *result.LoadLevel) {
			p95, _ := lv.P95.Number()
			lv.Met, lv.Why = ptr(false), fmt.Sprintf("p95 is %v of 2800 calls, the limit 500ms", time.Duration(p95*1e9).Round(time.Millisecond))
		}}
	d := s.document()
	lv := d.Load.Levels[0]
	p95, _ := lv.P95.Number()
	d.Verdict.Passed, d.Verdict.Reasons = ptr(false), []string{lv.Why}
	d.Caveats = []metrics.Caveat{{ID: "load.timer", Probe: "load", Metrics: []string{"p50_s", "p90_s", "service_p50_s", "service_p95_s", "generator_lag_p99_s"}, Scope: metrics.ScopeMetric, Effect: metrics.Annotate,
		Reason: "The generator shared its processors with the target, so both waited for each other", Remedy: "an agent on a host of its own"}}
	d.Checks = []result.Check{
		check("p95", "load.p95", "ms", 500, ptr(1e3*p95), lv.P95.N, iv(1e3*lv.P95.Interval.Lo, 1e3*lv.P95.Interval.Hi), result.Fail, lv.Why),
		check("error_rate", "load.error_rate", "rate", 0.01, ptr(0.0), 2800, iv(0, 0.0013), result.Pass, "error_rate is 0% of 2800 calls, the limit 1%"),
		{Key: "rate_sustained", Metric: "load.throughput_rps", Direction: "min", Limit: 100, Unit: "/s", Observed: ptr(100.0), N: 2800, Status: result.Pass, LimitSource: "load",
			Reason: "100 of 100 calls/s were answered, none of 2800 arrivals was dropped"},
	}
	return d
}

// overloaded is an open loop beyond the capacity of a single lock of 20 ms.
func overloaded() *result.Document {
	s := simulated{model: "open", ramps: constant(100, 20), period: 0.5, workers: 1, inFlight: 64, service: lognormal(0.020, 0.01), seed: 2, late: onTime,
		fails: func(r *rand.Rand) string {
			switch x := r.Float64(); {
			case x < 0.02:
				return "timeout"
			case x < 0.05:
				return "server_error"
			case x < 0.06:
				return "connection"
			case x < 0.08:
				return "cancelled"
			}
			return "ok"
		},
		judged: func(lv *result.LoadLevel) {
			lv.Sustained, lv.Met = ptr(false), ptr(false)
			lv.Why = fmt.Sprintf("rate not sustained: 50.1 of 100 calls/s; %d of %d arrivals were dropped at the limit of 64 calls in flight", lv.Dropped, lv.Scheduled)
		}}
	d := s.document()
	lv := d.Load.Levels[0]
	d.Verdict.Passed, d.Verdict.Reasons = ptr(false), []string{lv.Why}
	d.Checks = []result.Check{{Key: "rate_sustained", Metric: "load.throughput_rps", Direction: "min", Limit: 100, Unit: "/s", Observed: ptr(50.1), N: lv.Scheduled, Status: result.Fail, Reason: lv.Why}}
	d.Probes[0].Findings = []result.Finding{{ID: "load.rate_not_sustained", Severity: result.Warning, Message: lv.Why}}
	return d
}

// closedLoop ramps callers up and down over the same stall.
func closedLoop() *result.Document {
	s := simulated{model: "closed", ramps: []result.LoadRamp{{ForS: 10, From: 0, To: 10}, {ForS: 20, From: 10, To: 10}, {ForS: 10, From: 10, To: 0}}, period: 1, workers: 6,
		service: lognormal(0.010, 0.3), freeze: [2]float64{18, 20}, seed: 3}
	d := s.document()
	d.Load.Sessions = result.LoadSessions{Opened: 12, Reopened: 2}
	d.Verdict.Reasons = []string{"nothing was asked of the target: give --slo"}
	return d
}

// kneeFound is a search on a target that answers 96 calls a second.
func kneeFound() *result.Document {
	level := func(rate float64, confirms bool) (*simulated, *result.LoadLevel) {
		s := &simulated{model: "open", ramps: constant(rate, 10), warmup: 1, period: 0.25, workers: 2, inFlight: 64, service: lognormal(0.0208, 0.05), slo: "p95<100ms", late: onTime,
			stage: fmt.Sprintf("load-%g", rate), seed: uint64(10 * rate)}
		drawn := s.run()
		lv := s.levelOf(&drawn)
		p95, _ := lv.P95.Number()
		lv.Met, lv.Confirms = ptr(p95 < 0.1), confirms
		lv.Why = fmt.Sprintf("p95 is %v of %d calls, the limit 100ms", time.Duration(p95*1e9).Round(time.Millisecond), lv.P95.N)
		if lv.Dropped > 0 {
			lv.Sustained = ptr(false)
			lv.Why += fmt.Sprintf("; rate not sustained: 95.9 of %g calls/s; %d of %d arrivals were dropped at the limit of 64 calls in flight", rate, lv.Dropped, lv.Scheduled)
		}
		if *lv.Met {
			lv.Why = "every objective met"
		}
		return s, &lv
	}
	last, lv := level(94, true)
	last.judged = func(l *result.LoadLevel) { *l = *lv }
	d := last.document()
	d.Load.Levels = nil
	for _, rate := range []float64{10, 20, 40, 80, 160, 120, 100, 90, 95, 97} {
		_, l := level(rate, false)
		d.Load.Levels = append(d.Load.Levels, *l)
	}
	d.Load.Levels = append(d.Load.Levels, *lv, *lv)
	d.Load.Knee = &result.Knee{Rate: ptr(94.0), Lo: ptr(94.0), Hi: ptr(97.0), Confirmations: 2, Met: 2, Ended: "the interval is as narrow as asked, and the rate confirmed"}
	d.Verdict.Passed, d.Verdict.Reasons = ptr(true), []string{"94 calls/s meet the SLO, confirmed by 2 of 2 runs"}
	d.Checks = []result.Check{check("p95", "load.p95", "ms", 100, ptr(24.0), 846, iv(23.7, 24.3), result.Pass, "p95 is 24ms of 846 calls, the limit 100ms")}
	return d
}

// streaming is a load on a model with streamed answers.
func streaming() *result.Document {
	s := simulated{model: "open", ramps: constant(8, 60), warmup: 5, period: 1, workers: 32, service: lognormal(1.9, 0.35), slo: "p95<4s,ttft_p95<800ms", late: onTime, seed: 4,
		fails: func(r *rand.Rand) string {
			if r.Float64() < 0.03 {
				return "rate_limited"
			}
			return "ok"
		}, judged: func(lv *result.LoadLevel) { lv.Met, lv.Why = ptr(true), "every objective met" }}
	d := s.document()
	d.Target = result.Target{Kind: "llm", URI: "openai:small-model", Name: "small-model", Transport: "http"}
	m, first := d.Probes[0].Metrics, &metrics.Dist{}
	rng := rand.New(rand.NewPCG(5, 5))
	for range 420 {
		first.Record(int64(1e6 * lognormal(0.24, 0.4)(rng)))
	}
	m["ttft_p50_s"], m["ttft_p95_s"] = percentile(first, 0.5), percentile(first, 0.95)
	m["inter_token_gap_p50_s"], m["inter_token_gap_p95_s"] = num(0.0121, "s", 50400), num(0.0304, "s", 50400)
	m["tokens_out_per_s"], m["tokens_in_per_s"], m["cached_input_share"] = num(917.4, "/s", 424), num(5188, "/s", 424), num(0.812, "rate", 424)
	m["truncated_streams"], m["goodput_rps"], m["good_share"] = num(2, "count", 440), num(7.4, "/s", 440), within(0.951, "rate", 440, 0.926, 0.969)
	d.Histograms["load/ttft"] = hdr(first)
	d.Checks = []result.Check{check("p95", "load.p95", "ms", 4000, ptr(3480.0), 424, iv(3301, 3790), result.Pass, "p95 is 3.48s of 424 calls, the limit 4s"),
		check("ttft_p95", "load.ttft_p95", "ms", 800, ptr(462.0), 420, iv(430, 520), result.Unproven, "ttft_p95 is 462ms of 420 calls, the limit 800ms")}
	d.Verdict.Passed = ptr(true)
	return d
}

// generatorLimited is a load whose agents were the limit.
func generatorLimited() *result.Document {
	s := simulated{model: "open", ramps: constant(5000, 5), period: 0.25, workers: 64, service: lognormal(0.002, 0.2), seed: 6, late: func(r *rand.Rand) int64 { return 2000 + r.Int64N(90_000) },
		judged: func(lv *result.LoadLevel) {
			lv.Sustained, lv.Met = nil, nil
			lv.Generator = result.LoadGenerator{Saturated: true, Reason: "cpu 99% of one core", MoreAgents: 2, CPU: 0.99, GCPauseS: 0.18, LateP50: ptr(0.0412), LateP99: ptr(0.0911)}
			lv.Why = "generator-limited, target not judged: cpu 99% of one core"
			lv.P50, lv.P95, lv.P99 = withheld("s", "load.generator"), withheld("s", "load.generator"), withheld("s", "load.generator")
		}}
	d := s.document()
	d.Verdict.Reasons = []string{d.Load.Levels[0].Why}
	for _, k := range []string{"p50_s", "p90_s", "p95_s", "p99_s", "service_p50_s", "service_p95_s", "service_p99_s", "max_s"} {
		d.Probes[0].Metrics[k] = withheld("s", "load.generator")
	}
	d.Caveats = []metrics.Caveat{{ID: "load.generator", Probe: "load", Scope: metrics.ScopeProbe, Effect: metrics.Suppress, Reason: "Every agent was its own limit, so its times say nothing about the target", Remedy: "2 more agents"}}
	d.Fleet = zoned().Fleet
	d.Fleet.Breakdown.Stages = []string{"load"}
	return d
}

// mixed is a workload of two scenarios with several steps each.
func mixed() *result.Document {
	s := simulated{model: "closed", ramps: constant(24, 12), warmup: 2, period: 0.2, workers: 12, service: lognormal(0.031, 0.5), slo: "error_rate<1%", seed: 7,
		judged: func(lv *result.LoadLevel) { lv.Met, lv.Why = ptr(true), "every objective met" }}
	d := s.document()
	d.Verdict.Passed = ptr(true)
	d.Checks = []result.Check{check("error_rate", "load.error_rate", "rate", 0.01, ptr(0.0), 7100, iv(0, 0.0005), result.Pass, "error_rate is 0% of 7100 calls, the limit 1%")}
	rng := rand.New(rand.NewPCG(8, 8))
	for i, name := range []string{"browse/", "browse/list", "browse/read a note", "write/", "write/add, then tag"} {
		dist := &metrics.Dist{}
		for range 900 - 150*i {
			dist.Record(int64(1e6 * lognormal(0.02*float64(i+1), 0.4)(rng)))
		}
		scenario, step, _ := cut2(name)
		d.Load.Steps = append(d.Load.Steps, result.LoadStep{Scenario: scenario, Step: step, Outcomes: map[string]int64{"ok": dist.N(), "tool_error": int64(i)}, P50: percentile(dist, 0.5),
			P95: percentile(dist, 0.95), P99: percentile(dist, 0.99), ErrorRate: within(float64(i)/900, "rate", dist.N()+int64(i), 0, 0.01), Histogram: ptr(hdr(dist))})
	}
	return d
}

func cut2(s string) (a, b string, ok bool) {
	i := slices.Index([]byte(s), '/')
	return s[:i], s[i+1:], true
}

// cutShort is a load that was stopped by hand.
func cutShort() *result.Document {
	d := stalled()
	d.Run.Partial, d.Run.PartialReason = true, "interrupted"
	d.Load.Periods = d.Load.Periods[:14]
	d.Load.MeasuredS, d.Load.DrainS = 5, 0
	d.Verdict = result.Verdict{Policy: "slo", Reasons: []string{"cut short: interrupted"}}
	d.Histograms, d.Checks = nil, []result.Check{}
	return d
}

// allFailed is a load of which no call was answered well.
func allFailed() *result.Document {
	s := simulated{model: "closed", ramps: constant(4, 6), period: 1, workers: 4, service: lognormal(0.2, 0.1), seed: 11, fails: func(r *rand.Rand) string {
		if r.IntN(3) == 0 {
			return "timeout"
		}
		return "connection"
	}}
	d := s.document()
	d.Verdict.Passed, d.Verdict.Reasons = ptr(false), []string{"error_rate is 100% of 120 calls, the limit 1%"}
	d.Load.SLO = "error_rate<1%"
	return d
}

// unsent is a load that never began.
func unsent() *result.Document {
	return &result.Document{SchemaVersion: 1, OrdealVersion: "0.3.0", Command: "load", Target: result.Target{Kind: "mcp", URI: "http://127.0.0.1:9/mcp"},
		Verdict: result.Verdict{Policy: "slo", Reasons: []string{"no load was sent"}}, Load: &result.Load{Model: "open"}}
}

// loadDocuments are made once: a test that changes one takes a copy of its own.
var loadDocuments = sync.OnceValue(func() map[string]*result.Document {
	return map[string]*result.Document{"load-stall": stalled(), "load-overload": overloaded(), "load-closed": closedLoop(), "load-knee": kneeFound(), "load-llm": streaming(),
		"load-saturated": generatorLimited(), "load-steps": mixed(), "load-partial": cutShort(), "load-failed": allFailed(), "load-unsent": unsent()}
})

// copied is the document as its JSON gives it back.
func copied(t *testing.T, doc *result.Document) *result.Document {
	t.Helper()
	out, err := ParseJSON(bytes.NewReader(rendered(t, func(w io.Writer) error { return JSON(w, doc) })))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
