package wire

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Streams, buckets and subjects. They live here and nowhere else.
const (
	UnitStream   = "ORDEAL_UNITS"
	ResultStream = "ORDEAL_RESULTS"
	AgentBucket  = "ORDEAL_AGENTS"
	RunBucket    = "ORDEAL_RUNS"
	BlobBucket   = "ORDEAL_BLOBS"

	UnitSubjects   = "ordeal.v1.unit.>"
	ResultSubjects = "ordeal.v1.result.>"
)

// Limits of the wire.
const (
	AckWait      = 10 * time.Second // a unit without a sign of life is handed out again
	MaxBegun     = 5                // a unit begun this often without a result is poison
	UnitTTL      = time.Hour        // a unit whose controller died without taking it back
	ResultTTL    = 24 * time.Hour
	RunTTL       = 7 * 24 * time.Hour // of a run's record and document
	DedupeWindow = 10 * time.Minute
	Heartbeat    = 2 * time.Second
	MaxPayload   = 8 << 20 // bytes of one message
	// MinPayload is the least that a server must take, and what nats-server takes
	// unless it is told otherwise: eleven distributions of a load, which have 93 KB
	// each at their worst, come to it. Catalogues of tools and the periods of a long
	// load want MaxPayload.
	MinPayload = 1 << 20
	// PrepareWait bounds the time until a whole gang is ready: an agent may have
	// to start the server first, or be busy with another run. Who is ready waits
	// GoWait for go: longer, because the last one may be late.
	PrepareWait = 90 * time.Second
	GoWait      = PrepareWait + 30*time.Second
	// LeaseTTL is how long an agent works for a run without hearing from its
	// controller, unless the run says otherwise. It asks again after a third.
	LeaseTTL = 10 * time.Second
	// AskWait bounds the answer to one request for a lease.
	AskWait = 2 * time.Second
	// StartLead is how far ahead a gang's start time lies at least: the message
	// that carries it must have reached every member.
	StartLead = 100 * time.Millisecond
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

// QueueName is the work queue of a pool: agents that would draw other faults
// have a queue of their own, so that no unit of this schedule reaches them.
func QueueName(pool, digest string) string { return pool + "_" + digest[:min(8, len(digest))] }

// UnitSubject is where a unit is queued: one message at a time.
func UnitSubject(queue, run, unit string) string {
	return "ordeal.v1.unit." + queue + "." + run + "." + unit
}

// RunUnits matches the units of a run that are in a queue, begun or not.
func RunUnits(queue, run string) string { return "ordeal.v1.unit." + queue + "." + run + ".>" }

// QueueSubjects matches every unit of a queue.
func QueueSubjects(queue string) string { return "ordeal.v1.unit." + queue + ".>" }

// ResultSubject is where an agent publishes the result of a unit.
func ResultSubject(run, agent, unit string) string {
	return "ordeal.v1.result." + run + "." + agent + "." + unit
}

// RunResults matches every result of a run.
func RunResults(run string) string { return "ordeal.v1.result." + run + ".>" }

// ControlSubject carries go, halt and release of a run, to all agents at once.
func ControlSubject(run string) string { return "ordeal.v1.ctl." + run }

// ProgressSubject carries an agent's samples of a run's units, unacknowledged.
func ProgressSubject(run, agent string) string { return "ordeal.v1.progress." + run + "." + agent }

// EventSubject carries what becomes of a run's units at an agent, unacknowledged.
func EventSubject(run, agent string) string { return "ordeal.v1.event." + run + "." + agent }

// LeaseSubject is where an agent asks the controller of a run for leave to work.
func LeaseSubject(run, agent string) string { return "ordeal.v1.lease." + run + "." + agent }

// AgentSubject carries requests to one agent: see Request.
func AgentSubject(id string) string { return "ordeal.v1.agent." + id }

// NameSubject is where agents ask who bears a name: see Bearer. It is not
// AgentSubject, since whoever may publish there can give an agent work.
func NameSubject(id string) string { return "ordeal.v1.name." + id }

// RunSubject carries requests to the controller of a run: see Order.
func RunSubject(run string) string { return "ordeal.v1.run." + run }

// InboxPrefix is where the answers to an agent's requests arrive: its own, so
// that no agent can be allowed to read another's.
func InboxPrefix(id string) string { return "_INBOX.agent." + id }

// LastToken is the part of a subject behind its last dot.
func LastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }
