package plan

import (
	"fmt"
	"math"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/spec"
)

// Level is one load that is tried: all of a load test, or a step of a search.
type Level struct {
	Index    int           // from 0
	Rate     float64       // arrivals per second of a search; 0: what the spec asks for
	Duration time.Duration // of a search
	Confirms bool
}

// periods of a load: as short as these, and at most maxPeriods of them.
var periodLengths = []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
	30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

const maxPeriods = 150 // and those of the drain: below wire.MaxPeriods

// Period is the length of the periods of a load of that length. A load by count
// has no length that is known: its agents lengthen its periods as it goes on.
func Period(length time.Duration) time.Duration {
	for _, p := range periodLengths {
		if length <= maxPeriods*p {
			return p
		}
	}
	return periodLengths[len(periodLengths)-1]
}

// Load is the stage of one level. latency is that of the preflight call.
func Load(s *spec.Spec, c *Choice, virtual bool, latency time.Duration, l Level) Stage {
	load, ops := loadOf(s, l)
	load.Stage = ops
	peak := int(s.Load.Peak())
	if s.Load.Open {
		load.MilliRate, load.MaxInFlight = s.Load.Peak(), s.MaxInFlight
		if l.Rate > 0 {
			load.MilliRate = max(1, int64(math.Round(l.Rate*1000)))
		}
		expected := float64(load.MilliRate) / 1000 * latency.Seconds()
		peak = max(1, min(int(expected+0.5), s.MaxInFlight))
		load.Workers = 1
	} else {
		load.Workers = peak
	}
	load.Level = peak
	u := wire.Unit{Kind: wire.LoadUnit, Target: s.Target, Call: call(c, s.Seed), Workload: s.Load.Workload, Ops: ops, Load: load}
	st := Stage{Name: "load", Probe: "load", Phase: "load", Level: peak, Gang: !virtual, Units: []wire.Unit{u}}
	if s.Load.Knee != nil {
		st.Name = fmt.Sprintf("load-%d", l.Index+1)
		st.Units[0].Stage = st.Name
	}
	return st
}

// loadOf is what does not hang on the kind of loop.
func loadOf(s *spec.Spec, l Level) (*wire.Load, wire.Range) {
	length := s.Load.Length()
	if l.Duration > 0 {
		length = l.Duration
	}
	n := uint64(timedOps)
	if s.Load.Requests > 0 {
		n = uint64(s.Load.Requests)
	}
	load := &wire.Load{Duration: length, Profile: s.Load.Profile, Poisson: s.Load.Poisson, Seed: fmt.Sprintf("%s/%d", s.Seed, l.Index), Think: s.Load.Think,
		Measured: wire.Span{From: s.Load.WarmupTime}, Period: Period(length), Warmup: s.Warmup, Unpaced: s.BackoffMax <= 0, BackoffMax: s.BackoffMax, BackoffBudget: s.BackoffBudget, CheckOutput: s.Load.CheckOutput}
	return load, wire.Range{From: uint64(l.Index) * n, To: uint64(l.Index+1) * n}
}

// LoadPreflight tries the load once before it is sent: the call of a single tool,
// or one operation of a workload.
func LoadPreflight(s *spec.Spec, c *Choice) Stage {
	if s.Load.Workload == nil {
		return Preflight(s, c)
	}
	ops := wire.Range{From: 0, To: 1}
	return single("preflight", "survey", wire.Unit{Kind: wire.LoadUnit, Target: s.Target, Workload: s.Load.Workload, Ops: ops,
		Load: &wire.Load{Workers: 1, Level: 1, Stage: ops}})
}
