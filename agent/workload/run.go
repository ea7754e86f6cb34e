package workload

import (
	"encoding/json"
	"time"
)

// Call is one step ready to be called.
type Call struct {
	Scenario, Step string
	ID             int // what Steps counts it under
	Tool           string
	Args           json.RawMessage // valid until the next call of Next; nil: none
	Wait           time.Duration   // before the call
	Keep           bool            // Take wants the answer's content
}

// Run makes the calls of one operation after the other. It is reused: one for
// each caller. Not safe for concurrent use.
type Run struct {
	Call      // at hand, after Next
	Whole int // what Steps counts the operation as a whole under

	plan     *Plan
	scenario *scenario
	next     int // step after the one at hand
	op       uint64
	user     int
	args     []byte
	vars     [][]byte // JSON, by slot
	text     []byte   // of an answer
}

// NewRun returns a run of the plan that Start begins.
func (p *Plan) NewRun() *Run { return &Run{plan: p, vars: make([][]byte, p.vars)} }

// Start begins an operation; user is the number of its caller.
func (r *Run) Start(op uint64, user int) {
	r.scenario = r.plan.pick(op)
	r.Whole, r.next, r.op, r.user = r.scenario.whole, 0, op, user
}

// Next prepares the next call. It is false at the end of the scenario. A call
// whose arguments are constant costs no allocation, any other only what it takes
// to grow one buffer to the longest.
func (r *Run) Next() bool {
	if r.next == len(r.scenario.steps) {
		return false
	}
	st := &r.scenario.steps[r.next]
	r.next++
	r.Call = st.call
	if pieces := st.args.pieces; len(pieces) > 0 {
		buf := r.args[:0]
		for i := range pieces {
			p := &pieces[i]
			buf = r.append(append(buf, p.before...), &p.value, p.lone)
		}
		r.args = append(buf, st.args.tail...)
		r.Args = r.args
	}
	return true
}
