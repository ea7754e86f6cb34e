package wire

import (
	"encoding/json"
	"time"

	"ordeal/metrics"
)

// Version is the protocol version of every message of this package.
const Version = 1

// UnitKind names the executor of a unit.
type UnitKind string

const (
	SurveyUnit    UnitKind = "survey"    // connect, list tools
	PreflightUnit UnitKind = "preflight" // one real call with the chosen arguments
	OracleUnit    UnitKind = "oracle"    // read the target's state and count operation ids
	LoadUnit      UnitKind = "load"      // a range of operations, closed or open loop
	RecoveryUnit  UnitKind = "recovery"  // a range of operations, each retried until ok
	ContractUnit  UnitKind = "contract"  // a range of malformed calls with a control before each
)

// Range is a half-open range of operation indices [From, To).
type Range struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Len is the number of operations in the range.
func (r Range) Len() uint64 { return r.To - r.From }

// Unit is one piece of work. Exactly the parameter block of its Kind is set.
type Unit struct {
	V      int      `json:"v"`
	Run    string   `json:"run"`
	Stage  string   `json:"stage"`
	ID     string   `json:"id"`                   // unique within the run
	Gang   string   `json:"gang,omitempty"`       // share of a gang: what its go names
	Digest string   `json:"digest,omitempty"`     // of the fault schedule it was planned with
	Gen    uint64   `json:"generation,omitempty"` // of the controller that queued it
	Kind   UnitKind `json:"kind"`
	Target Target   `json:"target"`
	Call   CallSpec `json:"call"`
	Ops    Range    `json:"ops"`

	Load     *Load     `json:"load,omitempty"`
	Recovery *Recovery `json:"recovery,omitempty"`
	Contract *Contract `json:"contract,omitempty"`
	Oracle   *Oracle   `json:"oracle,omitempty"`
	Faults   *Faults   `json:"faults,omitempty"`   // nil = clean
	Workload *Workload `json:"workload,omitempty"` // of a load, in place of Call
}

// CallSpec is what to call. Tools is used round robin by operation index; one
// entry for a chosen tool.
type CallSpec struct {
	Tools []ToolCall `json:"tools,omitempty"`
	// OpIDSalt, when set, replaces {op_id} in string arguments by an id derived
	// from (salt, tool, operation).
	OpIDSalt string `json:"op_id_salt,omitempty"`
}

// ToolCall is a tool with its arguments.
type ToolCall struct {
	Name         string          `json:"name"`
	Args         json.RawMessage `json:"args,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// Load runs its operations on Workers workers at once (closed loop) or at a
// constant arrival rate (open loop).
type Load struct {
	Workers int `json:"workers"` // of this unit
	Level   int `json:"level"`   // of the whole stage: callers at once over all agents
	// FirstWorker numbers this unit's first worker within the level. Worker w
	// of a level owns the operations i of the stage with i mod Level == w.
	FirstWorker int           `json:"first_worker"`
	Stage       Range         `json:"stage"`              // operation range of the whole stage
	Warmup      int           `json:"warmup"`             // unmeasured operations before the range, per unit
	Duration    time.Duration `json:"duration,omitempty"` // stop issuing after this long; 0 = by count
	// MilliRate is the arrival rate of the whole stage in thousandths of a call
	// per second; 0 = closed loop. Arrival i is due at i*1e9/MilliRate µs.
	MilliRate int64 `json:"milli_rate,omitempty"`
	// Of several agents that share an arrival rate, Part of Parts makes the
	// arrivals i of the stage with i mod Parts == Part. Parts 0 is 1.
	Part        int `json:"part,omitempty"`
	Parts       int `json:"parts,omitempty"`
	MaxInFlight int `json:"max_in_flight,omitempty"`
	// Profile is the course of the load over time: callers of the stage in a closed
	// loop, thousandths of an arrival per second in an open one. Workers and Level,
	// or MilliRate, are then its peak, and Duration is its length. Nil: constant.
	Profile []Ramp `json:"profile,omitempty"`
	// Poisson draws the arrivals of an open loop from Seed, in place of even gaps.
	Poisson bool   `json:"poisson,omitempty"`
	Seed    string `json:"seed,omitempty"`
	// Measured is the part of the load that the tally is about, after its start: what
	// is due, or in a closed loop begun, before From or from To on is in the periods
	// only. To 0 is the end.
	Measured Span          `json:"measured"`
	Think    time.Duration `json:"think,omitempty"`  // closed loop: of each caller between two operations
	Period   time.Duration `json:"period,omitempty"` // length of Result.Periods; 0 = none

	// The load slows down when the target reports a quota, or another agent has heard
	// of one, unless it is Unpaced.
	Unpaced       bool          `json:"unpaced,omitempty"`
	BackoffMax    time.Duration `json:"backoff_max"`
	BackoffBudget time.Duration `json:"backoff_budget"`
	CheckOutput   bool          `json:"check_output"`
}

// Ramp is a stretch of a load profile that goes from one level to another in a
// straight line.
type Ramp struct {
	For  time.Duration `json:"for"`
	From int64         `json:"from"`
	To   int64         `json:"to"`
}

// Span is a half-open stretch of time [From, To) after the start of a load.
type Span struct {
	From time.Duration `json:"from,omitempty"`
	To   time.Duration `json:"to,omitempty"`
}

// Faults is the fault schedule of the unit at call level.
type Faults struct {
	Seed    string   `json:"seed"`
	Rule    string   `json:"rule"` // rule id: one per pass, so that passes draw independently
	Kinds   []string `json:"kinds"`
	RatePPB int64    `json:"rate_ppb"` // total probability that an attempt is faulted, parts per 10^9
}

// Recovery retries each operation until it succeeds or the budget is spent.
type Recovery struct {
	MaxRetries    int           `json:"max_retries"`
	BackoffMax    time.Duration `json:"backoff_max"`
	BackoffBudget time.Duration `json:"backoff_budget"` // of this unit
}

// Contract runs the malformed calls [Ops.From, Ops.To) of one tool's case list.
type Contract struct {
	Tool     Tool            `json:"tool"`
	Baseline json.RawMessage `json:"baseline"`  // valid arguments the cases corrupt
	RealArgs bool            `json:"real_args"` // the user's own arguments
	MaxCases int             `json:"max_cases"`
}

// Oracle reads state through a read-only tool.
type Oracle struct {
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args"`
	Path  string          `json:"path"` // dotted path to the list of entries; empty = find the list
	Salt  string          `json:"salt"`
	Names []string        `json:"names"` // probed tools, for the ids of the operations in Ops
}

// Result is what came of one unit, or a part of it.
type Result struct {
	V           int    `json:"v"`
	Run         string `json:"run"`
	Stage       string `json:"stage"`
	Unit        string `json:"unit"`
	Incarnation uint64 `json:"incarnation"` // delivery count: how often the unit had been handed out
	Seq         int    `json:"seq"`
	Final       bool   `json:"final"`
	Partial     bool   `json:"partial,omitempty"` // cut by a halt: holds what was measured until then
	Agent       string `json:"agent"`
	// Released says what ended a partial result early, when not a halt: lease,
	// or that no further calls were granted.
	Released string `json:"released_by,omitempty"`
	Start    *Start `json:"start,omitempty"` // of a share of a gang

	Calls   int64          `json:"calls"` // everything sent to the target, controls and warm-up included
	Elapsed time.Duration  `json:"elapsed"`
	Busy    time.Duration  `json:"busy"` // a call in flight or a deliberate wait; 0 on a virtual clock
	Tally   *metrics.Tally `json:"tally,omitempty"`
	// Periods of the load from its start, of Period each: Load.Period, or that doubled
	// until there are at most MaxPeriods.
	Periods   []metrics.Period  `json:"periods,omitempty"`
	Period    time.Duration     `json:"period,omitempty"`
	Steps     []StepTally       `json:"steps,omitempty"` // of a workload
	Sessions  Sessions          `json:"sessions,omitzero"`
	Behavior  *metrics.Behavior `json:"behavior,omitempty"`
	Survey    *Survey           `json:"survey,omitempty"`
	Contract  *ContractResult   `json:"contract,omitempty"`
	Oracle    *OracleResult     `json:"oracle,omitempty"`
	Preflight *Preflight        `json:"preflight,omitempty"`
	Generator Generator         `json:"generator"`
	Failure   *Failure          `json:"failure,omitempty"` // the unit could not be worked
}

// Sessions counts those that were opened on the target while a unit was at work,
// and of these the ones in place of a lost one.
type Sessions struct {
	Opened   int64 `json:"opened,omitempty"`
	Reopened int64 `json:"reopened,omitempty"`
}

// StepTally is what became of the calls of one step of a workload, in the measured
// part; a scenario as a whole has an empty Step.
type StepTally struct {
	Scenario string         `json:"scenario"`
	Step     string         `json:"step,omitempty"`
	Outcomes metrics.Counts `json:"outcomes"`
	Latency  metrics.Dist   `json:"latency"` // successes, µs
}

// MaxPeriods bounds the periods of a result, which travels in one message.
const MaxPeriods = 200

// ByLease is Released of a result that the end of a lease has cut.
const ByLease = "lease"

// Start is when a share of a gang began, on the agent's clock (see Ready.Clock).
type Start struct {
	Due int64 `json:"due"` // ns
	At  int64 `json:"at"`  // ns; before or after Due by what the waiting missed
}

// Sample is what was observed of a unit since the sample before it.
type Sample struct {
	Span     time.Duration  `json:"span"`
	Outcomes metrics.Counts `json:"outcomes"`
	Latency  metrics.Dist   `json:"latency"` // successes, µs
	// TokensIn and TokensOut are the reported usage, for the budget of money.
	TokensIn  int64 `json:"tokens_in,omitempty"`
	TokensOut int64 `json:"tokens_out,omitempty"`
	// Dropped are arrivals of an open loop that were not sent, InFlight the calls that
	// are open at the moment.
	Dropped  int64 `json:"dropped,omitempty"`
	InFlight int64 `json:"in_flight,omitempty"`
}

// Failure says why a unit could not be worked: the target could not be
// reached, or our side failed. It is data, not a score.
type Failure struct {
	Class   string `json:"class"` // startup, unreachable, auth_required, not_mcp, session_lost, busy, capacity, cancelled, harness
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
	Stderr  string `json:"stderr,omitempty"`
}

// Preflight is one real call with the chosen arguments.
type Preflight struct {
	Outcome   metrics.Outcome `json:"outcome"`
	Delivered bool            `json:"delivered"`
	LatencyUS int64           `json:"latency_us"`
	Message   string          `json:"message,omitempty"`
	Usage     bool            `json:"usage"`
}

// ContractResult is what the malformed calls met.
type ContractResult struct {
	Tool     string           `json:"tool"`
	Total    int              `json:"total"`    // cases of the tool
	LeftOut  int              `json:"left_out"` // beyond MaxCases
	Cases    []CaseResult     `json:"cases"`
	Controls map[string]int64 `json:"controls"` // control outcomes: ok, rejected, undelivered
	Output   OutputCheck      `json:"output"`
	Liveness []string         `json:"liveness,omitempty"` // what happened after crash-like cases
}

// OutputCheck counts answers checked against outputSchema.
type OutputCheck struct {
	Checked    int64  `json:"checked"`
	Violations int64  `json:"violations"`
	First      string `json:"first,omitempty"`
}

// CaseResult is one malformed call.
type CaseResult struct {
	Index            int             `json:"index"`
	Label            string          `json:"label"`
	Kind             string          `json:"kind"`
	Path             string          `json:"path"`
	Reference        bool            `json:"reference"` // one of the kinds RateMyAgent sends too
	Forbidden        bool            `json:"forbidden"`
	Why              string          `json:"why,omitempty"`
	Carries          bool            `json:"carries_baseline"`
	Outcome          metrics.Outcome `json:"outcome"`
	Delivered        bool            `json:"delivered"`
	ByText           bool            `json:"by_text,omitempty"`
	ControlOK        bool            `json:"control_ok"` // the control just before was accepted
	ControlDelivered bool            `json:"control_delivered"`
	Message          string          `json:"message,omitempty"`
	Payload          json.RawMessage `json:"payload,omitempty"` // kept for crashes and wrong acceptances, shrunk
	Exit             string          `json:"exit,omitempty"`    // process exit after the case
	Alive            *bool           `json:"alive,omitempty"`   // liveness after a crash-like case
	Reconnect        *bool           `json:"reconnect,omitempty"`
}

// OracleResult counts entries of the target's state.
type OracleResult struct {
	Status  string           `json:"status"` // ok, failed
	Entries int64            `json:"entries"`
	Effects map[uint64]int64 `json:"effects,omitempty"` // operation → entries that hold its id
	Message string           `json:"message,omitempty"`
}

// Generator is what the agent measured about itself during a unit.
type Generator struct {
	CPUMilli  int64        `json:"cpu_milli"` // CPU of the process, thousandths of one core
	GCPauseUS int64        `json:"gc_pause_us"`
	Lag       metrics.Dist `json:"lag"` // µs between due and woken
	Saturated bool         `json:"saturated"`
	Reason    string       `json:"reason,omitempty"`
	// Short is how many times the generator would have to be there to keep up: 2.5
	// asks for two more agents like this one. 0 when it was not saturated, or nobody
	// can tell.
	Short float64 `json:"short,omitempty"`
}
