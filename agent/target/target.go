// Package target reaches the system under test. One file per kind: a mock on a
// virtual clock, an MCP server over three transports, an LLM endpoint, a plain HTTP
// server.
//
// In goes a wire.Target; out come exchanges. A failure of the target is a value
// (metrics.Exchange), never a Go error; a Go error from here means that nothing
// could be measured at all. No call is ever retried here.
package target

import (
	"context"
	"encoding/json"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Call is one attempt to make.
type Call struct {
	Op      uint64 // operation index: coordinate of every draw
	Attempt uint32 // from 0
	Label   string // namespace of Op (load, recovery, contract): coordinate of the mock's draws
	Tool    string
	Args    json.RawMessage
	Level   int  // callers at once over all agents, for a mock that saturates
	Keep    bool // keep the answer's text and structured content
}

// Target is a connected system under test. Its methods may be called from
// several goroutines.
type Target interface {
	// Survey says who the target is and what it offers.
	Survey(ctx context.Context) (*wire.Survey, error)
	// Session returns the session of a virtual user, opening it on first use.
	// Users of a stdio server share its one process.
	Session(ctx context.Context, user int) (Session, error)
	// Alive checks that the target still answers, by something cheaper than a
	// tool call where the protocol has it. It may reconnect or restart; restarted
	// says so, and exit holds the exit status of a process that had died.
	Alive(ctx context.Context) (alive, restarted bool, exit string)
	// Virtual targets report latency instead of spending it.
	Virtual() bool
	// Close ends sessions and processes within its bounds, whatever ctx says.
	Close(ctx context.Context) error
}

// Session makes calls for one virtual user.
type Session interface {
	Call(ctx context.Context, c Call) metrics.Exchange
}

// OpenError says why nothing could be measured: the target could not be
// started, reached or talked to.
type OpenError struct{ Cause wire.Failure }

func (e *OpenError) Error() string { return e.Cause.Class + ": " + e.Cause.Message }

// Failure is the error as a result carries it.
func (e *OpenError) Failure() *wire.Failure { return &e.Cause }
