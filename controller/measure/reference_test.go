package measure_test

import (
	"fmt"
	"math"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/spec"
	"ordeal/metrics"
)

// profile is a simulated target of RateMyAgent; times in seconds.
type profile struct {
	name                              string
	latency, jitter, tail, multiplier float64
	errors                            float64
	tokensIn, tokensOut, static       int
	seed                              int
}

var (
	failures = []metrics.Outcome{metrics.Timeout, metrics.ServerError, metrics.RateLimited}
	tools    = []string{"echo", "search", "summarize"}
	kinds    = []string{"timeout", "rate_limit", "server_error", "malformed", "connection_refused"}
)

var (
	degradedScan = profile{name: "degraded", latency: 3, jitter: 1, tail: 0.15, multiplier: 2.2, tokensIn: 850, tokensOut: 120, seed: 1337}
	failingScan  = profile{name: "failing", latency: 12, jitter: 4, tail: 0.3, multiplier: 3, errors: 0.35, tokensIn: 850, tokensOut: 120, seed: 42}
	healthyScan  = profile{name: "healthy", latency: 0.35, jitter: 0.1, tokensIn: 850, tokensOut: 120, seed: 1337}
	bloatedScan  = profile{name: "bloated", latency: 0.4, jitter: 0.1, tokensIn: 4000, tokensOut: 90, static: 3800, seed: 1337}
)

func label(op uint64) string { return fmt.Sprintf("%s#%d", tools[op%3], op) }

func duration(s float64) time.Duration { return time.Duration(math.Round(s*1e6)) * time.Microsecond }

// call draws one attempt of the simulated target, in its published order.
func (p *profile) call(label string) metrics.Exchange {
	r := newTwister(fmt.Sprintf("%d:%s", p.seed, label))
	latency := p.latency + r.uniform(-p.jitter, p.jitter)
	if p.tail > 0 && r.random() < p.tail {
		latency *= p.multiplier
	}
	latency = max(0.001, latency)
	x := metrics.Exchange{Delivered: true, Executed: metrics.Yes, Latency: duration(latency)}
	if r.random() < p.errors {
		x.Outcome = failures[r.below(3)]
		x.Delivered = x.Outcome != metrics.Timeout
		x.Executed = metrics.Unknown
		x.Message = "simulated " + x.Outcome.Kind()
		return x
	}
	x.TTFT, x.ServerTime = duration(0.35*latency), duration(0.92*latency)
	variable := p.tokensIn - p.static
	x.Usage, x.TokensIn, x.TokensOut = true, int64(p.static+variable/2+r.below(variable-variable/2+1)), int64(p.tokensOut)
	return x
}

// faulted draws the fault of an attempt, counted from 1, and applies it.
func (p *profile) faulted(label string, attempt int, rate float64) metrics.Exchange {
	draw, share := newTwister(fmt.Sprintf("%d:%s:%d", p.seed, label, attempt)).random(), 0.0
	kind := ""
	for _, k := range kinds {
		if share += rate / float64(len(kinds)); draw < share {
			kind = k
			break
		}
	}
	return p.inject(kind, label)
}

// inject applies a fault. One drawn onto an answer that had failed anyway did
// nothing and is not counted.
func (p *profile) inject(kind, label string) metrics.Exchange {
	short := metrics.Exchange{Origin: metrics.FromInjector, Fault: kind, Executed: metrics.No, Latency: 20 * time.Millisecond}
	switch kind {
	case "timeout":
		short.Outcome, short.Latency = metrics.Timeout, 30*time.Second
	case "rate_limit":
		short.Outcome, short.Delivered = metrics.RateLimited, true
	case "server_error":
		short.Outcome, short.Delivered = metrics.ServerError, true
	case "connection_refused":
		short.Outcome = metrics.Connection
	case "malformed":
		x := p.call(label)
		if x.Ok() {
			x.Outcome, x.Fault, x.Origin = metrics.InvalidResponse, kind, metrics.FromInjector
		}
		return x
	default:
		return p.call(label)
	}
	return short
}

// scan is everything a published scan observed.
type scan struct {
	profile
	requests, ceiling, warmup, retries int
	rate                               float64
}

func (sc *scan) spec() *spec.Spec {
	s := spec.Default()
	s.Requests, s.Concurrency, s.Warmup, s.MaxRetries = sc.requests, sc.ceiling, sc.warmup, sc.retries
	s.FaultRate, s.FaultRatePPB = sc.rate, int64(math.Round(sc.rate*1e9))
	s.Seed, s.Timeout = fmt.Sprint(sc.seed), 30*time.Second
	s.BackoffMax, s.BackoffBudget = 5*time.Second, 30*time.Second
	s.Target = wire.Target{Kind: wire.Mock, Profile: sc.name}
	s.Probes, s.Phases = spec.AllProbes, spec.AllPhases
	return &s
}

func (sc *scan) survey() *wire.Survey {
	readOnly := true
	out := &wire.Survey{Name: sc.name + "-mock", Virtual: true, ReportsUsage: true}
	for _, name := range tools {
		out.Tools = append(out.Tools, wire.Tool{Name: name, ReadOnly: &readOnly, Required: 1,
			InputSchema: []byte(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`)})
	}
	return out
}

// load tallies the operations [from, from+n) on a number of callers, in the
// window of whom every one of them counts, as on a virtual clock.
func (sc *scan) load(name, probe string, from uint64, level int, call func(op uint64) metrics.Exchange) *merge.Stage {
	st := &merge.Stage{Name: name, Probe: probe, Level: level, Planned: 1, Done: 1, Tally: metrics.NewTally()}
	w := &st.Tally.Window
	w.Workers = int64(min(level, sc.requests))
	for op := from; op < from+uint64(sc.requests); op++ {
		x := call(op)
		st.Tally.Add(&x, 0)
		st.Calls++
		w.Completed++
		w.BusyUS += x.Latency.Microseconds()
		if x.Ok() {
			w.Succeeded++
		}
	}
	return st
}

func (sc *scan) clean(op uint64) metrics.Exchange { return sc.call(label(op)) }

// recovery retries each operation until it succeeds or the budget is spent.
func (sc *scan) recovery(from uint64) *merge.Stage {
	st := &merge.Stage{Name: "recovery", Probe: "fault", Level: 1, Planned: 1, Done: 1, Behavior: &metrics.Behavior{}}
	for op := from; op < from+uint64(sc.requests); op++ {
		t := metrics.Trajectory{Op: op, Label: label(op)}
		at := int64(0)
		for attempt := 1; attempt <= sc.retries+1; attempt++ {
			x := sc.faulted(label(op), attempt, sc.rate)
			t.Invocations = append(t.Invocations, metrics.Invocation{Attempt: attempt, Outcome: x.Outcome, Delivered: x.Delivered,
				Executed: x.Executed, Fault: x.Fault, StartedUS: at, LatencyUS: x.Latency.Microseconds(), Fingerprint: t.Label})
			st.Calls++
			if x.Ok() {
				break
			}
		}
		st.Behavior.Fold(&t)
	}
	return st
}

// contract sends the five reference cases of the one declared field to each
// tool, after a control of the well-formed call.
func (sc *scan) contract(tool string) *merge.Stage {
	r := &wire.ContractResult{Tool: tool, Total: 5, Controls: map[string]int64{}}
	for i, c := range []struct {
		kind      string
		forbidden bool
	}{{"null_required", true}, {"wrong_type", true}, {"empty_string", false}, {"very_long_string", false}, {"missing_required", true}} {
		control := sc.call("contract:" + tool + ":control")
		what := "rejected"
		switch {
		case control.Ok():
			what = "ok"
		case !control.Delivered:
			what = "undelivered"
		}
		r.Controls[what]++
		x := sc.call(fmt.Sprintf("contract:%s:%s[query]", tool, c.kind))
		dead := false
		res := wire.CaseResult{Index: i, Label: c.kind + "[query]", Kind: c.kind, Path: "/query", Reference: true, Forbidden: c.forbidden,
			Outcome: x.Outcome, Delivered: x.Delivered, Message: x.Message, ControlOK: control.Ok(), ControlDelivered: control.Delivered,
			Payload: []byte(`{"query":null}`)}
		if !x.Delivered {
			res.Alive = &dead
		}
		r.Cases = append(r.Cases, res)
	}
	return &merge.Stage{Name: "contract-" + tool, Probe: "contract", Planned: 1, Done: 1, Contract: r}
}

// summary runs the whole scan. The degradation pass repeats the warm-up, whose
// calls and faults count although its outcomes do not.
func (sc *scan) summary() *merge.Summary {
	w, n := uint64(sc.warmup), uint64(sc.requests)
	sum := &merge.Summary{}
	add := func(st *merge.Stage) *merge.Stage { sum.Stages = append(sum.Stages, st); return st }
	add(sc.load("latency", "latency", w, 1, sc.clean))
	add(sc.load("cost", "cost", 0, 1, sc.clean))
	for i, level := range plan.Levels(sc.ceiling) {
		st := add(sc.load(fmt.Sprintf("concurrency-%d", level), "concurrency", uint64(i)*n, level, sc.clean))
		if 2*st.Tally.Failures() >= st.Tally.Measured() {
			break
		}
	}
	for _, tool := range tools {
		add(sc.contract(tool))
	}
	again := add(sc.load("degradation", "fault", w, 1, func(op uint64) metrics.Exchange { return sc.faulted(label(op), 1, sc.rate) }))
	for op := range w {
		again.Calls++
		if x := sc.faulted(label(op), 1, sc.rate); x.Fault != "" {
			if again.Tally.Faults == nil {
				again.Tally.Faults = map[string]int64{}
			}
			again.Tally.Faults[x.Fault]++
		}
	}
	add(sc.recovery(w + n))
	return sum
}
