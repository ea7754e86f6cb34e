package measure

import (
	"slices"
	"time"

	"ordeal/controller/merge"
	"ordeal/controller/result"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// Fleet tells who carried the run out, what became of its gangs, how the values
// of a label compare and which agents stand out. who gives version and labels
// of an agent; nil, or an empty version, for one that nobody met.
func Fleet(sum *merge.Summary, who func(agent string) (version string, labels map[string]string)) *result.Fleet {
	if who == nil {
		who = func(string) (string, map[string]string) { return "", nil }
	}
	f := &result.Fleet{Agents: []result.FleetAgent{}, Gangs: []result.Gang{}, Outliers: []result.Outlier{}, Withheld: []result.WithheldAgent{},
		Calls: sum.Calls, Reissued: sum.Reissued, Ignored: sum.Ignored}
	for _, a := range sum.Fleet {
		f.Agents = append(f.Agents, fleetAgent(a, who))
	}
	for _, st := range sum.Stages {
		if st.Gang != nil {
			f.Gangs = append(f.Gangs, gangOf(st))
		}
		for _, w := range st.Withheld {
			f.Withheld = append(f.Withheld, result.WithheldAgent{Agent: w.Agent, Stage: st.Name, Reason: w.Reason, Requests: w.Requests})
		}
	}
	f.Breakdown = breakdown(sum)
	f.Compared, f.Outliers = outliers(sum.Stages, who)
	return f
}

func fleetAgent(a merge.AgentShare, who func(string) (string, map[string]string)) result.FleetAgent {
	version, labels := who(a.ID)
	if version == "" {
		version = "unknown"
	}
	out := result.FleetAgent{ID: a.ID, Version: version, Labels: labels, Units: a.Units, Operations: a.Operations, Lost: a.Lost}
	if a.Bound > 0 {
		out.ClockOffsetUS, out.ClockBoundUS = micros(a.Offset), micros(a.Bound)
	}
	return out
}

func micros(d time.Duration) *float64 { return ptr(float64(d) / 1e3) }

func gangOf(st *merge.Stage) result.Gang {
	g := st.Gang
	out := result.Gang{Stage: st.Name, Agents: len(g.Agents), Of: result.OfCallers, Planned: g.Planned, Achieved: g.Achieved, Attempts: g.Attempts,
		Lost: append([]string{}, g.Lost...), Degraded: g.Degraded, Repeated: g.Repeated}
	if g.Arrivals {
		out.Of = result.OfArrivals
	}
	if skew, bound, known := g.Skew(); known {
		out.SkewUS, out.SkewBoundUS = micros(skew), micros(bound)
	}
	if late, known := g.Late(); known {
		out.LateUS = micros(late)
	}
	return out
}

// breakdown sets the values of a label side by side; nil when nobody asked, or
// nothing was sent.
func breakdown(sum *merge.Summary) *result.LabelBreakdown {
	if sum.By == "" {
		return nil
	}
	values := map[string]*merge.Share{}
	for _, st := range sum.Stages {
		for value, sh := range st.Groups {
			if values[value] == nil {
				values[value] = newShare()
			}
			addShare(values[value], sh)
		}
	}
	if len(values) == 0 {
		return nil
	}
	b := &result.LabelBreakdown{Label: sum.By, Stages: []string{}}
	compared := alike(sum.Stages, values)
	for _, st := range compared {
		b.Stages = append(b.Stages, st.Name)
	}
	for _, value := range valuesOf(values) {
		same := newShare()
		for _, st := range compared {
			addShare(same, st.Groups[value])
		}
		b.Groups = append(b.Groups, groupOf(value, values[value], same))
	}
	return b
}

// alike picks the stages in which a difference between values says something
// about them. In a gang every agent has the same share of one load at one time,
// so gangs in which all values took part; units of a pool go to whoever is free,
// and a value that happened to get more of a busy stage would look slower.
// Without such a gang it is the stages of the pool that all values worked on.
func alike(stages []*merge.Stage, values map[string]*merge.Share) []*merge.Stage {
	var gangs, pools []*merge.Stage
	for _, st := range stages {
		everybody := !st.Degraded() && len(st.Groups) > 0
		for value := range values {
			everybody = everybody && st.Groups[value] != nil && st.Groups[value].Outcomes.Total() > 0
		}
		switch {
		case !everybody:
		case st.Gang != nil:
			gangs = append(gangs, st)
		default:
			pools = append(pools, st)
		}
	}
	if len(gangs) > 0 {
		return gangs
	}
	return pools
}

func newShare() *merge.Share {
	return &merge.Share{Agents: map[string]bool{}, Outcomes: metrics.Counts{}}
}

func addShare(to, from *merge.Share) {
	for id := range from.Agents {
		to.Agents[id] = true
	}
	to.Operations += from.Operations
	for o, n := range from.Outcomes {
		to.Outcomes[o] += n
	}
	to.Latency.Merge(&from.Latency)
}

// groupOf counts everything a value did, and times the stages that all share.
func groupOf(value string, whole, same *merge.Share) result.Group {
	s := &sheet{probe: result.Probe{Metrics: map[string]metrics.Measured{}}}
	for name, q := range map[string]float64{"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99} {
		s.missing("s", same.Latency.N(), name)
		if stat.Carries(same.Latency.N(), q) {
			s.percentile(name, &same.Latency, q)
		}
	}
	n := same.Outcomes.Total()
	s.rate("error_rate", n-same.Outcomes[metrics.OK], n)
	g := result.Group{Value: value, Agents: len(whole.Agents), Operations: whole.Operations, Outcomes: map[string]int64{},
		P50: s.probe.Metrics["p50_s"], P95: s.probe.Metrics["p95_s"], P99: s.probe.Metrics["p99_s"], ErrorRate: s.probe.Metrics["error_rate"]}
	for o, k := range whole.Outcomes {
		if k > 0 {
			g.Outcomes[o.String()] = k
		}
	}
	return g
}

// valuesOf lists the values by name, those that are none of them last.
func valuesOf(values map[string]*merge.Share) []string {
	var names, last []string
	for value := range values {
		if value == merge.None || value == merge.Other {
			last = append(last, value)
		} else {
			names = append(names, value)
		}
	}
	slices.Sort(names)
	slices.Sort(last)
	return append(names, last...)
}
