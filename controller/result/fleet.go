package result

import "ordeal/metrics"

// Fleet is who carried a run out, together or apart, and whether anyone's share
// stands out.
type Fleet struct {
	Agents    []FleetAgent    `json:"agents"`
	Gangs     []Gang          `json:"gangs"` // stages carried out together, in the order of the plan
	Breakdown *LabelBreakdown `json:"breakdown,omitempty"`
	// Compared is how many agents had enough requests to be compared with the rest;
	// only these can be in Outliers.
	Compared int             `json:"compared_agents"`
	Outliers []Outlier       `json:"outliers"`
	Withheld []WithheldAgent `json:"withheld"`
	Calls    int64           `json:"calls"`               // everything sent to the target
	Reissued int64           `json:"reissued_operations"` // the target may have seen them twice
	Ignored  int64           `json:"ignored_results"`     // late, repeated and stale ones
}

// FleetAgent is one agent's share of the work.
type FleetAgent struct {
	ID         string            `json:"id"`
	Version    string            `json:"version"`
	Labels     map[string]string `json:"labels,omitempty"`
	Units      int64             `json:"units"`
	Operations int64             `json:"operations"`
	// ClockOffsetUS is its clock minus the controller's, wrong by at most
	// ClockBoundUS; null when it was never measured.
	ClockOffsetUS *float64 `json:"clock_offset_us"`
	ClockBoundUS  *float64 `json:"clock_bound_us"`
	Lost          bool     `json:"lost"` // it went away with work in hand
}

// What a gang's Planned and Achieved count.
const (
	OfCallers  = "callers"
	OfArrivals = "permille_of_arrivals"
)

// Gang is what became of a stage that several agents carried out together.
type Gang struct {
	Stage    string   `json:"stage"`
	Agents   int      `json:"agents"`
	Of       string   `json:"of"` // callers, permille_of_arrivals
	Planned  int      `json:"planned"`
	Achieved int      `json:"achieved"`
	Attempts int      `json:"attempts"`
	Lost     []string `json:"lost"`
	Degraded bool     `json:"degraded"` // the repetition lost a member too: the stage is in no verdict
	// Repeated are operations of an abandoned attempt that the target may have seen.
	Repeated int64 `json:"repeated_operations"`
	// SkewUS is how far apart the members began, wrong by at most SkewBoundUS; LateUS
	// by how much the latest of them missed its start. Null when unknown.
	SkewUS      *float64 `json:"skew_us"`
	SkewBoundUS *float64 `json:"skew_bound_us"`
	LateUS      *float64 `json:"late_us"`
}

// LabelBreakdown tells the work apart by the value of a label of the agents.
type LabelBreakdown struct {
	Label  string   `json:"label"`
	Stages []string `json:"stages"` // that percentiles and error rates are over
	Groups []Group  `json:"groups"` // by value
}

// Group is what the agents of one value observed.
type Group struct {
	Value      string           `json:"value"`
	Agents     int              `json:"agents"`
	Operations int64            `json:"operations"`
	Outcomes   map[string]int64 `json:"outcomes"`
	P50        metrics.Measured `json:"p50_s"`
	P95        metrics.Measured `json:"p95_s"`
	P99        metrics.Measured `json:"p99_s"`
	ErrorRate  metrics.Measured `json:"error_rate"`
}

// What stands out in an outlier.
const (
	Slower      = "slower"       // its median
	Faster      = "faster"       //
	SlowerTail  = "slower_tail"  // its 95th percentile, while its median does not
	FasterTail  = "faster_tail"  //
	MoreErrors  = "more_errors"  // its error rate
	FewerErrors = "fewer_errors" //
)

// Outlier is an agent that observed something else than the rest of the fleet.
type Outlier struct {
	Agent    string            `json:"agent"`
	Labels   map[string]string `json:"labels,omitempty"`
	What     string            `json:"what"`
	Evidence OutlierEvidence   `json:"evidence"`
}

// OutlierEvidence sets an agent's value against that of the rest of the fleet on
// the same mix of stages.
type OutlierEvidence struct {
	Metric string           `json:"metric"` // p50_s, p95_s, error_rate
	Own    metrics.Measured `json:"own"`
	Rest   metrics.Measured `json:"rest"`
	// P is the chance of a difference as large if the agent were like the rest,
	// before correction; Level what it had to stay below.
	P     float64 `json:"p"`
	Level float64 `json:"level"`
}

// WithheldAgent is an agent that was the limit itself: its times in a stage are
// left out, its outcomes are not.
type WithheldAgent struct {
	Agent    string `json:"agent"`
	Stage    string `json:"stage"`
	Reason   string `json:"reason"`
	Requests int64  `json:"requests"` // without a time
}
