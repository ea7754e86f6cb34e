package result

import (
	"encoding/json"
	"time"

	"ordeal/metrics"
)

// SchemaVersion of the document.
const SchemaVersion = 1

// Document is one run, measured and judged.
type Document struct {
	SchemaVersion int                  `json:"schema_version"`
	OrdealVersion string               `json:"ordeal_version"`
	Command       string               `json:"command"`
	Run           Run                  `json:"run"`
	Target        Target               `json:"target"`
	Verdict       Verdict              `json:"verdict"`
	Breakdown     []Dimension          `json:"breakdown"`
	Checks        []Check              `json:"checks"`
	Probes        []Probe              `json:"probes"`
	Caveats       []metrics.Caveat     `json:"caveats"`
	Histograms    map[string]Histogram `json:"histograms"`
	Fleet         *Fleet               `json:"fleet,omitempty"` // nil in documents of before there were fleets
	Load          *Load                `json:"load,omitempty"`  // of a load test
}

// Run is how and by whom the numbers were obtained.
type Run struct {
	ID            string          `json:"id"`
	StartedAt     time.Time       `json:"started_at"`
	DurationS     float64         `json:"duration_s"`
	Invocation    []string        `json:"invocation"` // the words after ordeal that run it again; literal secrets left out
	Partial       bool            `json:"partial"`
	PartialReason string          `json:"partial_reason,omitempty"`
	Seed          string          `json:"seed"`
	Spec          json.RawMessage `json:"spec"` // secrets as references
	Fleet         []Agent         `json:"fleet"`
	Calls         int64           `json:"calls"` // everything sent to the target
	Reissued      int64           `json:"reissued_operations"`
	Time          Time            `json:"time"`
	Comparability Comparability   `json:"comparability"`
}

// Time says where the duration of a run went. On a virtual clock nothing is
// spent in calls.
type Time struct {
	CallsAndWaitsS float64 `json:"calls_and_waits_s"` // a call in flight, injected latency, back-off
	StartupS       float64 `json:"startup_s"`         // of the server: start and handshake
	OwnS           float64 `json:"own_s"`             // the rest: the instrument's own
}

// Agent is one agent's share of the work.
type Agent struct {
	ID         string            `json:"id"`
	Labels     map[string]string `json:"labels,omitempty"`
	Version    string            `json:"version"`
	Units      int64             `json:"units"`
	Operations int64             `json:"operations"`
}

// Comparability is what two results must share to be compared.
type Comparability struct {
	Hash   string            `json:"hash"`
	Fields map[string]string `json:"fields"`
}

// Target is the system under test as it presented itself.
type Target struct {
	Kind            string          `json:"kind"`
	URI             string          `json:"uri"`
	Name            string          `json:"name"`
	Version         string          `json:"version"`
	Transport       string          `json:"transport"`
	ProtocolVersion string          `json:"protocol_version"`
	Capabilities    json.RawMessage `json:"capabilities"`
	Language        string          `json:"language,omitempty"`
	Tool            string          `json:"tool"`
	ToolArgs        json.RawMessage `json:"tool_args"`
	ToolArgsSource  string          `json:"tool_args_source"` // user, none, or where synthesis took it from
	Mutability      string          `json:"mutability"`       // read-only, mutating, unknown
	Tools           int             `json:"tools"`
	Virtual         bool            `json:"virtual_clock"` // latency is reported, not slept
}

// Status of a check.
type Status string

const (
	Pass      Status = "pass"      // the evidence excludes a violation
	Unproven  Status = "unproven"  // the observed value meets the limit, the evidence does not prove it
	Fail      Status = "fail"      // the evidence excludes the limit
	Undecided Status = "undecided" // the observed value misses the limit, the evidence does not prove it
	NA        Status = "n/a"       // not measured
)

// Check is one threshold of the policy against one metric.
type Check struct {
	Key         string            `json:"key"`
	Metric      string            `json:"metric"`    // probe.metric
	Direction   string            `json:"direction"` // max or min
	Limit       float64           `json:"limit"`
	Unit        string            `json:"unit"` // ms, rate, $, count, x, /s
	Observed    *float64          `json:"observed"`
	N           int64             `json:"n"`
	Interval    *metrics.Interval `json:"interval"`
	Status      Status            `json:"status"`
	Score       *float64          `json:"score"` // 0..100; null when n/a
	Reason      string            `json:"reason"`
	LimitSource string            `json:"limit_source"` // policy, recovery_floor, recovery_ideal, slo, load
}

// Dimension is one row of the score breakdown.
type Dimension struct {
	Dimension string   `json:"dimension"`
	Weight    float64  `json:"weight"`
	Points    *float64 `json:"points"`               // null when not measured
	NotScored string   `json:"not_scored,omitempty"` // not_selected, phase_excluded, did_not_run, not_applicable, no_threshold, not_measured
	Note      string   `json:"note"`
}

// Verdict is the policy's answer.
type Verdict struct {
	Passed         *bool    `json:"passed"` // null = no verdict
	Score          *float64 `json:"score"`
	UncappedScore  *float64 `json:"uncapped_score"`
	CapReason      string   `json:"cap_reason"`
	PassScore      float64  `json:"pass_score"`
	Policy         string   `json:"policy"`
	GradedWeight   float64  `json:"graded_weight"`
	MeasuredWeight float64  `json:"measured_weight"`
	Reasons        []string `json:"reasons"`
}

// Severity of a finding.
type Severity string

const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Finding is something a reader should know or fix.
type Finding struct {
	ID       string   `json:"id"` // stable, e.g. contract.accepted_invalid
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Evidence string   `json:"evidence,omitempty"` // a minimal reproducer, an excerpt, the numbers
}

// Probe is one probe's measurement.
type Probe struct {
	Name       string                      `json:"name"`  // latency, cost, concurrency, contract, fault, behavior
	Phase      string                      `json:"phase"` // baseline, chaos, behavior
	Summary    string                      `json:"summary"`
	Applicable bool                        `json:"applicable"`
	Error      string                      `json:"error,omitempty"`
	Metrics    map[string]metrics.Measured `json:"metrics"`
	Findings   []Finding                   `json:"findings"`
	DurationS  float64                     `json:"duration_s"`
}

// Histogram is one distribution in the HdrHistogram V2 compressed form.
type Histogram struct {
	Encoding string `json:"encoding"` // hdr-v2-base64
	Unit     string `json:"unit"`     // us
	Data     string `json:"data"`
}

// Refusal is the document of a run that would have misled.
type Refusal struct {
	SchemaVersion int    `json:"schema_version"`
	Refused       bool   `json:"refused"` // always true
	Reason        string `json:"reason"`
	Remedy        string `json:"remedy"`
	Target        Target `json:"target"`
}
