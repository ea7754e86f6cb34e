package wire

import "time"

// Hello is an agent's entry in the fleet registry, renewed with each heartbeat.
type Hello struct {
	V        int               `json:"v"`
	ID       string            `json:"id"`
	Instance string            `json:"instance,omitempty"` // of the process: every one draws its own when it starts
	Version  string            `json:"version"`            // of the software
	Labels   map[string]string `json:"labels,omitempty"`
	Pools    []string          `json:"pools"`
	Digest   string            `json:"digest"`             // of the fault schedule's probe set
	Capacity int               `json:"capacity,omitempty"` // callers it can hold at once; 0 = not said
	Units    int64             `json:"units"`              // worked so far
	Load     Holding           `json:"load"`
	Draining bool              `json:"draining,omitempty"` // finishes what it has, takes nothing new
}

// Holding is what an agent has in hand at the moment.
type Holding struct {
	Run      string `json:"run,omitempty"`
	Unit     string `json:"unit,omitempty"`
	CPUMilli int64  `json:"cpu_milli"` // of the process since the last heartbeat, thousandths of one core
	Cores    int    `json:"cores"`     // it may use
}

// Bearer says who bears an agent's name. Agents ask each other: two processes of
// one name would be taken for one.
type Bearer struct {
	V        int    `json:"v"`
	Agent    string `json:"agent"`
	Instance string `json:"instance"`
	Process  string `json:"process"`            // host and process, for people
	Draining bool   `json:"draining,omitempty"` // it is about to leave
}

// Control is a message to all agents of a run. One of an older generation than
// an agent has seen of the run comes from a controller that was replaced, and is
// ignored.
type Control struct {
	V          int    `json:"v"`
	Kind       string `json:"kind"` // go, halt, release, quota
	Generation uint64 `json:"generation,omitempty"`
	Reason     string `json:"reason,omitempty"`

	// Gang, At and Offsets belong to go. At is the start on the controller's
	// clock (ns since the Unix epoch); an agent adds its offset to have it on its
	// own clock.
	Gang    string           `json:"gang,omitempty"`
	At      int64            `json:"at,omitempty"`
	Offsets map[string]int64 `json:"offsets,omitempty"` // agent → its clock minus the controller's, ns

	// Pause belongs to quota: nobody calls before it is over.
	Pause time.Duration `json:"pause,omitempty"`
}

// Control kinds.
const (
	Go      = "go"
	Halt    = "halt"
	Release = "release" // close what was kept open for the run
	Quota   = "quota"   // a quota was seen by one agent: all of them pause and ask for their calls
)

// Request asks one agent for something; it answers Ready.
type Request struct {
	V    int    `json:"v"`
	Kind string `json:"kind"`
	Unit *Unit  `json:"unit,omitempty"` // prepare, abort
}

// Request kinds.
const (
	// Prepare: take a share of a gang stage; the answer comes once connections
	// are open and the warm-up is done.
	Prepare = "prepare"
	// Abort: give the share up; the answer comes once the agent has let go of it.
	Abort = "abort"
	// Ping: what does your clock say? The answer comes at once.
	Ping = "ping"
)

// Ready answers a Request.
type Ready struct {
	V       int      `json:"v"`
	Agent   string   `json:"agent"`
	Clock   int64    `json:"clock,omitempty"` // ping: the agent's clock, ns since the Unix epoch, never stepped while it runs
	Calls   int64    `json:"calls,omitempty"` // abort: calls that the share had made
	Failure *Failure `json:"failure,omitempty"`
}

// Busy is the class of the failure of an agent that works something else, or gets
// no leave for the moment: the share may be offered again.
const Busy = "busy"

// Event says what became of a unit at an agent.
type Event struct {
	V           int    `json:"v"`
	Kind        string `json:"kind"`
	Agent       string `json:"agent"`
	Unit        string `json:"unit"`
	Incarnation uint64 `json:"incarnation"`
	Ack         string `json:"ack,omitempty"`    // began: where the delivery is acknowledged
	Reason      string `json:"reason,omitempty"` // returned, unstored: why
}

// Event kinds.
const (
	Began    = "began"    // the agent has the unit in hand
	Declined = "declined" // it gave the unit back unbegun; Reason says why
	Returned = "returned" // it gave the unit back after it had begun it; Reason says why
	Unstored = "unstored" // its result could not be stored; Reason says why
)

// Ask is an agent's request for leave to work a run, renewed every third of
// the lease, and for calls while these are counted.
type Ask struct {
	V        int          `json:"v"`
	Agent    string       `json:"agent"`
	Calls    int64        `json:"calls,omitempty"`    // wanted beyond those in hand
	Returned int64        `json:"returned,omitempty"` // granted before and not made
	Quota    *QuotaSignal `json:"quota,omitempty"`    // seen since the last request
}

// QuotaSignal is a rate limit that an agent has met.
type QuotaSignal struct {
	RetryAfter time.Duration `json:"retry_after,omitempty"` // 0 = the target did not say
	Limit      int64         `json:"limit,omitempty"`       // calls per Window; 0 = the target did not say
	Window     time.Duration `json:"window,omitempty"`
	Age        time.Duration `json:"age,omitempty"` // of the refused call when this was sent: it may be older than a pause
}

// Grant answers Ask. The lease lasts TTL from the moment at which the agent
// sent its request: a slow answer shortens it.
type Grant struct {
	V          int           `json:"v"`
	Generation uint64        `json:"generation"`
	TTL        time.Duration `json:"ttl"`
	Denied     string        `json:"denied,omitempty"`  // why nothing may be done for this run any more
	Metered    bool          `json:"metered,omitempty"` // only granted calls may be made
	Calls      int64         `json:"calls,omitempty"`
	Wait       time.Duration `json:"wait,omitempty"`  // no call was granted: ask again after this
	Spent      string        `json:"spent,omitempty"` // no call will be granted any more: why
}

// Order is a request to the controller of a run, and its answer.
type Order struct {
	V      int    `json:"v"`
	Kind   string `json:"kind"` // halt, who
	Reason string `json:"reason,omitempty"`
	Holder string `json:"holder,omitempty"` // answer: who leads the run
	Error  string `json:"error,omitempty"`
}

// Order kinds.
const (
	OrderHalt = "halt"
	OrderWho  = "who"
)

// Progress is a sample of a unit at work: how far it is, and what was observed
// since the sample before. It may be lost; what counts is the result.
type Progress struct {
	Stage  string  `json:"stage"`
	Unit   string  `json:"unit"`
	Agent  string  `json:"agent"`
	Done   int64   `json:"done"`
	Errors int64   `json:"errors"`
	Sample *Sample `json:"sample,omitempty"`
}
