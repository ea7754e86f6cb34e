package wire

import (
	"encoding/json"
	"time"
)

// RunState is where a run is in its life.
//
//	running ─┬─ finished
//	         ├─ stopped   by a halt, a stop condition, a budget or a timeout: what was measured is kept
//	         └─ failed    without a document
type RunState string

const (
	Running  RunState = "running"
	Finished RunState = "finished"
	Stopped  RunState = "stopped"
	Failed   RunState = "failed"
)

// Run is the record of a run in the bucket of runs. It holds all that a second
// controller needs to go on where the first one died; secrets are references.
//
// Generation is the fencing token: it rises with every controller that takes the
// run over, and whoever holds a lower one is ignored. The holder renews the
// record every third of TTL by compare-and-set; a record that nobody renews for
// TTL may be taken over.
type Run struct {
	V          int           `json:"v"`
	ID         string        `json:"id"`
	State      RunState      `json:"state"`
	Generation uint64        `json:"generation"`
	Holder     string        `json:"holder"` // host and process of the controller
	Claim      string        `json:"claim"`  // drawn by each holder: tells its own writes from all others
	TTL        time.Duration `json:"ttl"`
	Started    time.Time     `json:"started"`
	Active     time.Duration `json:"active"` // how long controllers have led it so far
	Renewals   uint64        `json:"renewals"`

	Command string          `json:"command"`
	Target  string          `json:"target"` // for lists
	Words   []string        `json:"words"`
	Version string          `json:"version"`
	Order   json.RawMessage `json:"order"`          // spec, policy, prices and options: the controller's own
	Plan    string          `json:"plan,omitempty"` // digest of the planned units

	Stage string       `json:"stage,omitempty"` // under way
	Done  int          `json:"done"`            // units finished, of those planned so far
	Units int          `json:"units"`
	Gangs []GangRecord `json:"gangs,omitempty"`
	// Granted is how many calls of the budget have been handed out, or may be
	// before the next write: a second controller counts all of them as made.
	Granted int64  `json:"granted,omitempty"`
	Reason  string `json:"reason,omitempty"` // why it stopped or failed
	// Document is under which name the result document is stored, once there is
	// one; Verdict is its line.
	Document string `json:"document,omitempty"`
	Verdict  string `json:"verdict,omitempty"`
}

// GangRecord is one attempt at a gang stage: written before its go, so that a
// second controller knows what was begun.
type GangRecord struct {
	Stage   string   `json:"stage"`
	Gang    string   `json:"gang"`
	Attempt int      `json:"attempt"`
	Units   []string `json:"units"`
	Agents  []string `json:"agents"`
	Workers []int    `json:"workers"` // of each unit
	Offsets []int64  `json:"offsets"` // ns, of each agent's clock
	Bounds  []int64  `json:"bounds"`  // ns
	// Lost members made the attempt degraded.
	Lost []string `json:"lost,omitempty"`
}
