package report

import (
	"fmt"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// zoned is a run of 16 agents in four zones: one slow agent, one that cannot
// connect, one that was the limit itself, and two levels that lost an agent.
func zoned() *result.Document {
	d := degraded()
	d.Run.Fleet, d.Run.Calls, d.Run.Reissued, d.Run.DurationS = nil, 28_000, 330, 310
	d.Fleet = &result.Fleet{Compared: 16, Calls: 28_000, Reissued: 330, Ignored: 1,
		Breakdown: &result.LabelBreakdown{Label: "zone", Stages: []string{"concurrency-16"}},
		Withheld:  []result.WithheldAgent{{Agent: "ap-2", Stage: "concurrency-16", Reason: "cpu 97% of one core", Requests: 250}},
		Gangs: []result.Gang{
			gang("concurrency-8", 8, 8, 345, 538, "eu-4"),
			gang("concurrency-16", 16, 16, 301, 533),
			gang("concurrency-32", 32, 28, 340, 547, "eu-2", "us-4"),
		},
		Outliers: []result.Outlier{
			{Agent: "sa-2", Labels: map[string]string{"zone": "sa", "node": "n10"}, What: result.MoreErrors, Evidence: result.OutlierEvidence{Metric: "error_rate",
				Own: within(0.116, "rate", 250, 0.08199, 0.16163), Rest: within(0.008286, "rate", 3500, 0.005775, 0.011874), P: 1e-16, Level: 0.00104}},
			{Agent: "us-3", Labels: map[string]string{"zone": "us", "node": "n15"}, What: result.Slower, Evidence: result.OutlierEvidence{Metric: "p50_s",
				Own: within(0.237567, "s", 250, 0.233471, 0.245759), Rest: within(0.065535, "s", 3224, 0.064511, 0.067583), P: 3.2e-12, Level: 0.00111}},
		},
	}
	for i, zone := range []string{"ap", "eu", "sa", "us"} {
		d.Fleet.Breakdown.Groups = append(d.Fleet.Breakdown.Groups, zoneGroup(zone, i))
		for k := range 4 {
			d.Fleet.Agents = append(d.Fleet.Agents, zoneAgent(zone, 4*i+k, k+1))
		}
	}
	for _, a := range d.Fleet.Agents {
		d.Run.Fleet = append(d.Run.Fleet, result.Agent{ID: a.ID, Version: a.Version, Labels: a.Labels, Units: a.Units, Operations: a.Operations})
	}
	d.Caveats = append(d.Caveats,
		metrics.Caveat{ID: "concurrency.degraded_levels", Probe: "concurrency", Metrics: []string{"levels", "max_sustained_concurrency"}, Scope: metrics.ScopeMetric, Effect: metrics.Annotate,
			Reason: "An agent was lost twice at 32 callers (28 took part). What these levels saw is left out; how the target takes them is unknown.", Remedy: "agents that stay until the end, then run it again"})
	return d
}

// gang attempted once, or again without those it lost; more than one loss is one
// in the repetition.
func gang(stage string, planned, achieved int, skew, bound float64, lost ...string) result.Gang {
	return result.Gang{Stage: stage, Agents: min(planned, 16), Of: result.OfCallers, Planned: planned, Achieved: achieved, Attempts: min(2, 1+len(lost)), Lost: lost,
		Degraded: len(lost) > 1, Repeated: int64(100 * len(lost)), SkewUS: ptr(skew), SkewBoundUS: ptr(bound), LateUS: ptr(371.2)}
}

func zoneGroup(zone string, i int) result.Group {
	at := func(v float64, n int64) metrics.Measured { return within(v, "s", n, 0.97*v, 1.04*v) }
	g := result.Group{Value: zone, Agents: 4, Operations: 7000, Outcomes: map[string]int64{"ok": 6930, "connection": 60, "timeout": 10},
		P50: at(0.0559+0.008*float64(i), 990), P95: at(0.0856+0.07*float64(i), 990), P99: at(0.105+0.09*float64(i), 990),
		ErrorRate: within(0.005, "rate", 1000, 0.0021, 0.0117)}
	if zone == "sa" {
		g.ErrorRate = within(0.036, "rate", 1000, 0.0261, 0.0495)
	}
	return g
}

func zoneAgent(zone string, n, k int) result.FleetAgent {
	a := result.FleetAgent{ID: fmt.Sprintf("%s-%d", zone, k), Version: "0.2.0", Labels: map[string]string{"zone": zone, "node": fmt.Sprint("n", n+1)},
		Units: 5, Operations: 1750, ClockOffsetUS: ptr(120 * float64(n-8)), ClockBoundUS: ptr(86 + 9*float64(n))}
	a.Lost = a.ID == "eu-2" || a.ID == "eu-4" || a.ID == "us-4"
	return a
}

// cutOff is an open loop of two agents that lost one, and the other when it was
// repeated: nothing of it is judged.
func cutOff() *result.Document {
	const lost = "an agent was lost twice in stage latency: 50.0% of the arrivals, planned 100.0%"
	d := openLoop()
	d.Run.Calls, d.Run.Reissued, d.Run.DurationS, d.Run.Fleet = 900, 400, 41, nil
	d.Probes = []result.Probe{{Name: "latency", Phase: "baseline", Applicable: true, Error: lost, Summary: "not measured: " + lost, Metrics: values{
		"p95_s": withheld("s", "latency.degraded"), "p99_s": withheld("s", "latency.degraded"), "error_rate": withheld("rate", "latency.degraded")}}}
	d.Caveats = []metrics.Caveat{{ID: "latency.degraded", Probe: "latency", Metrics: []string{"p95_s", "p99_s", "error_rate"}, Scope: metrics.ScopeProbe, Effect: metrics.Suppress,
		Reason: "An agent was lost twice in stage latency: 50.0% of the arrivals, planned 100.0% (b). That is not the load that was asked for, so nothing is concluded from it.",
		Remedy: "agents that stay until the end, then run it again"}}
	for i, c := range d.Checks {
		d.Checks[i] = check(c.Key, c.Metric, c.Unit, c.Limit, nil, 0, nil, result.NA, "not measured: "+lost)
	}
	d.Histograms = nil
	d.Fleet = &result.Fleet{Calls: 900, Reissued: 400,
		Agents: []result.FleetAgent{{ID: "a", Version: "0.2.0", Units: 2, Operations: 450}, {ID: "b", Version: "unknown", Lost: true}},
		Gangs:  []result.Gang{{Stage: "latency", Agents: 2, Of: result.OfArrivals, Planned: 1000, Achieved: 500, Attempts: 2, Lost: []string{"b"}, Degraded: true, Repeated: 400}},
	}
	return d
}
