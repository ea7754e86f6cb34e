package wire

import (
	"fmt"
	"regexp"
	"time"
)

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
	UnitTTL      = time.Hour // a unit whose controller died without taking it back
	ResultTTL    = 24 * time.Hour
	DedupeWindow = 10 * time.Minute
	Heartbeat    = 2 * time.Second
	MaxPayload   = 8 << 20 // bytes of one message
	// PrepareWait bounds the time until a whole gang is ready: an agent may have
	// to start the server first, or be busy with another run. Who is ready waits
	// GoWait for go: longer, because the last one may be late.
	PrepareWait = 90 * time.Second
	GoWait      = PrepareWait + 30*time.Second
)

// DefaultPool is the pool of agents that asked for none.
const DefaultPool = "default"

var name = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// CheckName refuses a name that does not fit one token of a subject and a key
// of the registry; what says whose it is, as in "pool".
func CheckName(what, s string) error {
	if !name.MatchString(s) {
		return fmt.Errorf("%s %q: want 1 to 128 letters, digits, - or _", what, s)
	}
	return nil
}

// UnitSubject is where the units of a stage are queued.
func UnitSubject(pool, run, stage string) string {
	return "ordeal.v1.unit." + pool + "." + run + "." + stage
}

// RunSubjects matches the units of a run that are still queued in a pool.
func RunSubjects(pool, run string) string { return "ordeal.v1.unit." + pool + "." + run + ".>" }

// PoolSubjects matches every unit of a pool.
func PoolSubjects(pool string) string { return "ordeal.v1.unit." + pool + ".>" }

// ResultSubject is where the results of a unit are published.
func ResultSubject(run, unit string) string { return "ordeal.v1.result." + run + "." + unit }

// RunResults matches every result of a run.
func RunResults(run string) string { return "ordeal.v1.result." + run + ".>" }

// ControlSubject carries go, halt and release of a run, to all agents at once.
func ControlSubject(run string) string { return "ordeal.v1.ctl." + run }

// ProgressSubject carries the progress of a run's units, unacknowledged.
func ProgressSubject(run string) string { return "ordeal.v1.progress." + run }

// AgentSubject carries requests to one agent: prepare a share, or give it up.
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
	V      int    `json:"v"`
	Kind   string `json:"kind"` // go, halt, release
	Stage  string `json:"stage,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Control kinds.
const (
	// Go starts a gang stage on receipt. It carries no time: the clocks of two
	// machines may be hours apart, and messages take milliseconds.
	Go      = "go"
	Halt    = "halt"
	Release = "release" // close what was kept open for the run
)

// Prepare asks an agent to take a share of a gang stage; it answers Ready. With
// Abort it asks for the share back: the agent answers once it has let go of it.
type Prepare struct {
	V     int  `json:"v"`
	Unit  Unit `json:"unit"`
	Abort bool `json:"abort,omitempty"`
}

// Busy is the class of the failure of an agent that works something else: the
// share may be offered again.
const Busy = "busy"

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
