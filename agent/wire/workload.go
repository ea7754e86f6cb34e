package wire

import (
	"encoding/json"
	"time"
)

// Workload is a mix of scenarios. An operation of a load is one run of one
// scenario by one virtual user; which one, and everything it draws, depends on
// the seed and the number of the operation alone.
type Workload struct {
	Seed      string     `json:"seed"`
	Scenarios []Scenario `json:"scenarios"`
	Feeders   []Feeder   `json:"feeders,omitempty"`
	// PerCall opens a session for every operation and closes it after; without it
	// a virtual user keeps one.
	PerCall bool `json:"per_call,omitempty"`
}

// Scenario is a script: its steps run one after the other, and one that fails
// ends the operation.
type Scenario struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"` // its share is Weight over the sum of all
	Steps  []Step `json:"steps"`
}

// Step is one call.
type Step struct {
	Name string `json:"name"` // what it is counted under
	Tool string `json:"tool,omitempty"`
	// Args may hold ${...}: a feeder's column, a generator, or what an earlier step
	// extracted. A string that is nothing but one keeps the type of its value.
	// For a language model they are {"prompt": ..., "max_tokens": ...}, the second
	// optional; over plain HTTP they are the body, a text body being a JSON string.
	Args json.RawMessage `json:"args,omitempty"`
	// Extract names variables, and where in the answer each is: a JSON pointer, or
	// "text:" and a regular expression.
	Extract map[string]string `json:"extract,omitempty"`
	Think   time.Duration     `json:"think,omitempty"` // before the next step
}

// Feeder is a table of values. An operation takes one row of it.
type Feeder struct {
	Name    string              `json:"name"`
	Columns []string            `json:"columns"`
	Rows    [][]json.RawMessage `json:"rows,omitempty"`
	Order   string              `json:"order,omitempty"`  // sequential (default), random
	Digest  string              `json:"digest,omitempty"` // stands for the rows in a report
}
