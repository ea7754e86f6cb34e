package policy

import "ordeal/metrics/stat"

// kind says what sort of quantity a threshold limits, and so what its
// interval is.
type kind uint8

const (
	quantity   kind = iota // a percentile, a mean, a ratio: the interval comes with the metric
	proportion             // k of n: the interval follows from the counts
	count                  // exact, a statement about the cases sent
)

// threshold wires a policy key to a metric of a probe.
type threshold struct {
	key, probe, metric string
	label              string // in sentences
	unit               string // ms, rate, $, count, x
	scale              float64
	good               stat.Direction
	kind               kind
	counted            string // what n counts
	// absolute: failing it imposes the lower cap. There is no slightly over.
	absolute bool
	// floor names the metric that replaces the policy's limit, because the
	// injected faults and not the target decide what can be reached; ideal the
	// one that says what the faults really drawn left reachable.
	floor, ideal string
	// scales: more requests mean more of what n counts.
	scales bool
}

// thresholds in the order of the report.
var thresholds = []threshold{
	{key: "p95_latency_ms", probe: "latency", metric: "p95_s", label: "p95 latency", unit: "ms", scale: 1000,
		counted: "successful calls", scales: true},
	{key: "p99_latency_ms", probe: "latency", metric: "p99_s", label: "p99 latency", unit: "ms", scale: 1000,
		counted: "successful calls", scales: true},
	{key: "error_rate_max", probe: "latency", metric: "error_rate", label: "error rate", unit: "rate", scale: 1,
		kind: proportion, counted: "calls", scales: true},
	{key: "cost_per_request_max", probe: "cost", metric: "cost_per_request", label: "cost per request", unit: "$", scale: 1,
		counted: "calls", scales: true},
	{key: "contract_crash_rate_max", probe: "contract", metric: "crash_rate", label: "contract crash rate", unit: "rate", scale: 1,
		kind: proportion, counted: "cases", absolute: true},
	{key: "contract_invalid_accepted_max", probe: "contract", metric: "accepted_invalid", label: "invalid inputs accepted", unit: "count", scale: 1,
		kind: count, counted: "cases"},
	{key: "recovery_rate_min", probe: "behavior", metric: "recovery_rate", label: "recovery rate", unit: "rate", scale: 1,
		good: stat.AtLeast, kind: proportion, counted: "disrupted operations", floor: "recovery_floor", ideal: "recovery_ideal", scales: true},
	{key: "retry_amplification_max", probe: "behavior", metric: "retry_amplification", label: "retry amplification", unit: "x", scale: 1,
		counted: "operations", scales: true},
	{key: "duplicate_mutation_max", probe: "behavior", metric: "duplicate_mutations", label: "duplicate mutations", unit: "count", scale: 1,
		kind: count, counted: "operations", absolute: true, scales: true},
}

// retired is a key of older policy files. It compared the ceiling of the
// concurrency ramp, a flag, with itself.
const retired = "concurrency_min"

// dimensions in the order of the breakdown: the probes that can carry weight.
var dimensions = []string{"latency", "cost", "concurrency", "contract", "fault", "behavior"}

// bad reports whether an observed value misses the limit.
func (t threshold) bad(observed, limit float64) bool {
	if t.good == stat.AtLeast {
		return observed < limit
	}
	return observed > limit
}

// exact reports whether the observed value is itself the proof.
func (t threshold) exact(limit float64) bool {
	return t.kind == count || t.absolute && limit == 0
}

// score is 100 on the good side of the limit and falls linearly from there: to
// 0 at twice a maximum, to 0 at nothing for a minimum. Past a maximum of 0
// there is no partial credit.
func (t threshold) score(observed, limit float64) float64 {
	switch {
	case !t.bad(observed, limit):
		return 100
	case limit == 0:
		return 0
	case t.good == stat.AtLeast:
		return max(0, 100*(observed/limit))
	}
	return max(0, 100*(1-(observed-limit)/limit))
}

func (t threshold) direction() string {
	if t.good == stat.AtLeast {
		return "min"
	}
	return "max"
}

// Row describes one threshold a policy may set.
type Row struct {
	Key       string
	Value     float64 // of this policy; meaningless unless Set
	Set       bool
	Default   float64 // of the built-in policy
	Direction string  // max or min
	Metric    string  // probe.metric
	Unit      string  // ms, rate, $, count, x
	Absolute  bool    // failing it imposes the absolute cap
	Derived   string  // metric that replaces the value when it was measured; empty for most
}

// Rows lists every threshold, those this policy sets and those it leaves out,
// in the order of the report.
func (p *Policy) Rows() []Row {
	builtin := Default().Thresholds
	rows := make([]Row, 0, len(thresholds))
	for _, t := range thresholds {
		value, set := p.Thresholds[t.key]
		row := Row{Key: t.key, Value: value, Set: set, Default: builtin[t.key], Direction: t.direction(),
			Metric: t.probe + "." + t.metric, Unit: t.unit, Absolute: t.absolute}
		if t.floor != "" {
			row.Derived = t.probe + "." + t.floor
		}
		rows = append(rows, row)
	}
	return rows
}
