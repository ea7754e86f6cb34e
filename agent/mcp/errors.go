package mcp

import (
	"errors"
	"fmt"
	"strings"

	"ordeal/metrics"
)

// StartClass tells why nothing could be measured.
type StartClass string

const (
	Startup      StartClass = "startup"       // the process did not start, died, or did not answer in time
	Unreachable  StartClass = "unreachable"   // no connection, or the server refuses or fails every request
	AuthRequired StartClass = "auth_required" // 401 or 403
	NotMCP       StartClass = "not_mcp"       // something answers, but not this protocol or no common revision
)

// StartError says that a server could not be used at all. All its texts are
// redacted.
type StartError struct {
	Class  StartClass
	What   string // what happened
	Status int    // HTTP status; 0 none
	Exit   string // exit status or signal of a process that ended; empty otherwise
	Stderr string // tail of what the process wrote there
	Remedy string // what to do
	cause  error
}

// Error is one line: what, how the process ended, its last words, what to do.
func (e *StartError) Error() string {
	parts := []string{"mcp: " + e.What}
	if e.Exit != "" && !strings.Contains(e.What, e.Exit) {
		parts = append(parts, e.Exit)
	}
	if lines := strings.Split(strings.TrimSpace(e.Stderr), "\n"); lines[len(lines)-1] != "" {
		parts = append(parts, "stderr: "+lines[len(lines)-1])
	}
	text := strings.Join(parts, ": ")
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

func (e *StartError) Unwrap() error { return e.cause }

// startError turns the exchange that decided a handshake into an error.
func (c *Client) startError(x *metrics.Exchange, doing string) *StartError {
	e := &StartError{Status: x.Status, What: fmt.Sprintf("%s: %s: %s", doing, x.Outcome, x.Message)}
	switch x.Outcome {
	case metrics.AuthRequired:
		e.Class, e.Remedy = AuthRequired, "give credentials with a header, for example Authorization"
	case metrics.InvalidResponse, metrics.ProtocolError, metrics.ToolError, metrics.SessionLost:
		e.Class, e.Remedy = NotMCP, "check that the address is that of an MCP server of this transport"
	case metrics.RateLimited:
		e.Class, e.Remedy = Unreachable, "the server refuses for quota: wait, or raise the quota"
	default:
		e.Class, e.Remedy = Unreachable, "check the address, and that the server runs"
		if c.stdio() {
			e.Class, e.Remedy = Startup, "run the command by hand, or raise the start timeout"
		}
	}
	return e
}

// withProcess adds what the process left behind: its last words, and how it
// ended if it did so by itself.
func (c *Client) withProcess(err error, p *process, ended string) error {
	var start *StartError
	if !errors.As(err, &start) {
		return err
	}
	if ended != "" {
		p.settle()
	}
	start.Stderr = c.cfg.Redactor.Text(p.stderr.tail(stderrShown))
	if ended == "" {
		if seen := c.find.lines(); len(seen) > 0 {
			start.What += "; until then: " + c.cfg.Redactor.Line(strings.Join(seen, "; "), messageShown)
		}
		return start
	}
	start.Exit, start.Class, start.What = ended, Startup, "the server ended before it was ready: "+ended
	start.Remedy = "run the command by hand to see why it ends"
	if len(p.withheld) > 0 {
		start.Remedy += "; it was not given " + strings.Join(p.withheld[:min(len(p.withheld), 5)], ", ") + ", whose names sound secret: set them as environment of the target"
	}
	return start
}
