package wire

import "time"

// Streams, buckets and subjects. They live here and nowhere else.
const (
	UnitStream   = "ORDEAL_UNITS"
	ResultStream = "ORDEAL_RESULTS"
	AgentBucket  = "ORDEAL_AGENTS"
	RunBucket    = "ORDEAL_RUNS"

	UnitSubjects   = "ordeal.v1.unit.>"
	ResultSubjects = "ordeal.v1.result.>"
)

// Limits of the wire.
const (
	AckWait      = 10 * time.Second // a unit without a sign of life is handed out again
	MaxDeliver   = 5
	ResultTTL    = 24 * time.Hour
	DedupeWindow = 10 * time.Minute
	Heartbeat    = 2 * time.Second
	MaxPayload   = 8 << 20 // bytes of one message
)

// DefaultPool is the pool of agents that asked for none.
const DefaultPool = "default"

// UnitSubject is where the units of a stage are queued.
func UnitSubject(pool, run, stage string) string {
	return "ordeal.v1.unit." + pool + "." + run + "." + stage
}

// PoolSubjects matches every unit of a pool.
func PoolSubjects(pool string) string { return "ordeal.v1.unit." + pool + ".>" }

// ResultSubject is where the results of a unit are published.
func ResultSubject(run, unit string) string { return "ordeal.v1.result." + run + "." + unit }

// RunResults matches every result of a run.
func RunResults(run string) string { return "ordeal.v1.result." + run + ".>" }

// ControlSubject carries go and halt of a run.
func ControlSubject(run string) string { return "ordeal.v1.ctl." + run }

// ProgressSubject carries the progress of a run's units, unacknowledged.
func ProgressSubject(run string) string { return "ordeal.v1.progress." + run }

// AgentSubject carries requests to one agent (prepare, release).
func AgentSubject(id string) string { return "ordeal.v1.agent." + id }

// Hello is an agent's entry in the fleet registry, renewed with each heartbeat.
type Hello struct {
	V       int               `json:"v"`
	ID      string            `json:"id"`
	Version string            `json:"version"` // of the software
	Labels  map[string]string `json:"labels,omitempty"`
	Pools   []string          `json:"pools"`
	Digest  string            `json:"digest"` // of the fault schedule's probe set
	Units   int64             `json:"units"`  // worked so far
}

// Control is a message to all agents of a run.
type Control struct {
	V       int       `json:"v"`
	Kind    string    `json:"kind"` // go, halt, release
	Stage   string    `json:"stage,omitempty"`
	StartAt time.Time `json:"start_at,omitzero"` // go: start of a gang stage
	Reason  string    `json:"reason,omitempty"`
}

// Control kinds.
const (
	Go      = "go"
	Halt    = "halt"
	Release = "release" // close what was kept open for the run
)

// Prepare asks an agent to take a share of a gang stage; it answers Ready.
type Prepare struct {
	V    int  `json:"v"`
	Unit Unit `json:"unit"`
}

// Ready answers Prepare: connections are open, the work waits for go.
type Ready struct {
	V       int      `json:"v"`
	Agent   string   `json:"agent"`
	Failure *Failure `json:"failure,omitempty"`
}

// Progress is a sign of life of a unit, for display only.
type Progress struct {
	Stage  string `json:"stage"`
	Unit   string `json:"unit"`
	Agent  string `json:"agent"`
	Done   int64  `json:"done"`
	Errors int64  `json:"errors"`
}
