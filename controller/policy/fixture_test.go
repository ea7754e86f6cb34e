package policy

import (
	"testing"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// values is a probe's metrics as plain numbers, each with n of its own.
type values map[string]metrics.Measured

func of(value any, n int64) metrics.Measured { return metrics.Measured{Value: value, N: n} }

func within(value, lo, hi float64, n int64) metrics.Measured {
	return metrics.Measured{Value: value, N: n, Interval: &metrics.Interval{Lo: lo, Hi: hi}}
}

func probe(name string, v values) result.Probe {
	phase := "baseline"
	if name == "behavior" {
		phase = "behavior"
	}
	return result.Probe{Name: name, Phase: phase, Applicable: true, Metrics: v}
}

// flawless is a run of n requests against a target that does nothing wrong.
// Latencies carry an interval that proves them at any n.
func flawless(n int64) Input {
	return Input{Requests: n, Probes: []result.Probe{
		probe("latency", values{"p95_s": within(0.4, 0.3, 0.5, n), "p99_s": within(0.5, 0.4, 0.6, n), "error_rate": of(0.0, n)}),
		probe("cost", values{"cost_per_request": of(0.01, n)}),
		probe("concurrency", values{"max_sustained_concurrency": of(int64(5), 4)}),
		probe("contract", values{"crash_rate": of(0.0, 15), "accepted_invalid": of(int64(0), 9)}),
		probe("fault", values{"injected": of(n/5, n)}),
		probe("behavior", values{"recovery_rate": of(1.0, n/5+1), "recovery_floor": of(0.96, 0), "recovery_ideal": of(1.0, n/5+1),
			"retry_amplification": of(1.2, n), "duplicate_mutations": of(int64(0), n)}),
	}}
}

// set replaces a metric of a probe of in and returns in.
func set(in Input, probe, metric string, m metrics.Measured) Input {
	for _, p := range in.Probes {
		if p.Name == probe {
			p.Metrics[metric] = m
		}
	}
	return in
}

func without(in Input, name string) Input {
	var kept []result.Probe
	for _, p := range in.Probes {
		if p.Name != name {
			kept = append(kept, p)
		}
	}
	in.Probes = kept
	return in
}

func find(t testing.TB, out Outcome, key string) result.Check {
	t.Helper()
	for _, c := range out.Checks {
		if c.Key == key {
			return c
		}
	}
	t.Fatalf("no check %s", key)
	return result.Check{}
}

// passed is the verdict in a word.
func passed(out Outcome) string {
	switch p := out.Verdict.Passed; {
	case p == nil:
		return "none"
	case *p:
		return "pass"
	}
	return "fail"
}
