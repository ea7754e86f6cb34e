package target

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"ordeal/agent/wire"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics"
)

// Lanes of the mock's draws; one block of four words each.
const (
	laneTime schedule.Lane = 16 // jitter, tail, error, kind of error
	laneRest schedule.Lane = 17 // overload, tokens
)

// What all profiles share: the first token after 35 % of the latency, 92 % of
// it spent in the server, never faster than a millisecond.
const (
	ttftPercent   = 35
	serverPercent = 92
	fastest       = 1_000 // µs
)

// Overload: each full capacity in excess adds 60 % of refusals, up to 95 %.
const (
	overloadScale = 600_000_000
	overloadMost  = 950_000_000
)

// mockTarget is a target without a network, on a virtual clock: latency is
// reported in the exchange and never spent. Every draw is a function of
// (seed, call label, operation, attempt), so any number of agents sees the same
// target. Overload depends on the planned level of the call, not on how many
// calls happen to be open.
type mockTarget struct {
	profile
	stream schedule.Stream
	limit  time.Duration // what a call that is never answered costs
}

func openMock(t wire.Target) (Target, error) {
	name := t.Profile
	if name == "" {
		name = "healthy"
	}
	i := slices.IndexFunc(profiles, func(p profile) bool { return p.name == name })
	if i < 0 {
		return nil, unknownProfile(name)
	}
	return &mockTarget{profile: profiles[i], stream: schedule.New(t.Seed), limit: t.Timeout}, nil
}

// Survey lists the three tools. Their schema is a bare object, as the mock of
// RateMyAgent declares it: undeclared arguments stay allowed.
func (m *mockTarget) Survey(context.Context) (*wire.Survey, error) {
	yes := true
	s := &wire.Survey{Name: m.name + "-mock", Version: "1", Capabilities: json.RawMessage(`{"tools":{}}`), Virtual: true, ReportsUsage: true}
	for _, t := range mockTools {
		s.Tools = append(s.Tools, wire.Tool{Name: t.name, Description: t.does, InputSchema: json.RawMessage(mockSchema), ReadOnly: &yes})
	}
	return s, nil
}

// Session is cheap: a user of the mock has no connection.
func (m *mockTarget) Session(context.Context, int) (Session, error) {
	return &mockSession{mock: m}, nil
}

// Alive is always true: there is no process to die.
func (m *mockTarget) Alive(context.Context) (alive, restarted bool, exit string) {
	return true, false, ""
}

func (m *mockTarget) Virtual() bool               { return true }
func (m *mockTarget) Close(context.Context) error { return nil }

// mockSession remembers what the last call had to compute: the hash of its
// label and the verdict on its arguments, which rarely change between calls.
type mockSession struct {
	mock    *mockTarget
	rule    atomic.Pointer[labelRule]
	verdict atomic.Pointer[argsVerdict]
}

type labelRule struct {
	label string
	key   schedule.RuleKey
}

type argsVerdict struct {
	args   []byte
	reason string
}

// Call draws one exchange.
func (s *mockSession) Call(ctx context.Context, c Call) metrics.Exchange {
	if ctx.Err() != nil {
		return metrics.Exchange{Outcome: metrics.Cancelled, Origin: metrics.FromGenerator, Message: "stopped before the call"}
	}
	if !slices.ContainsFunc(mockTools, func(t mockTool) bool { return t.name == c.Tool }) {
		return metrics.Exchange{Outcome: metrics.ProtocolError, Delivered: true, Executed: metrics.No, Code: -32602,
			Latency: fastest * time.Microsecond, Message: "unknown tool " + quoted(c.Tool)}
	}
	m, key := s.mock, s.key(c.Label)
	words := m.stream.Block(c.Op, c.Attempt, laneTime, key)
	us := m.latency(words, c.Level)
	if m.errorPPB > 0 && schedule.Hit(words[2], m.errorPPB) {
		return m.fail(m.errors[schedule.Below(words[3], uint64(len(m.errors)))], us)
	}
	rest := m.stream.Block(c.Op, c.Attempt, laneRest, key)
	if over := c.Level - m.capacity; m.capacity > 0 && over > 0 {
		pressure := min(overloadMost, int64(over)*overloadScale/int64(m.capacity))
		if schedule.Hit(rest[0], schedule.PPB(pressure)) {
			return m.fail(metrics.ServerError, us)
		}
	}
	if m.validates {
		if reason := s.check(c.Args); reason != "" {
			return metrics.Exchange{Outcome: metrics.ToolError, Delivered: true, Executed: metrics.No, Latency: time.Duration(us) * time.Microsecond, Message: reason}
		}
	}
	return m.succeed(&c, us, rest[1])
}

// latency is base ± jitter, sometimes stretched by the tail, then by overload.
func (m *mockTarget) latency(words [4]uint64, level int) int64 {
	us := schedule.Between(words[0], m.base-m.jitter, m.base+m.jitter)
	if m.tailPPB > 0 && schedule.Hit(words[1], m.tailPPB) {
		us = us * m.tailTenths / 10
	}
	us = max(us, fastest)
	if m.capacity > 0 && level > m.capacity {
		us = us * int64(level) / int64(m.capacity)
	}
	return us
}

// fail is an error of the target's own. A timeout takes as long as the caller
// is willing to wait. A 429 from the error draw is a failure that looks like
// one: it names no limit and no wait, so nothing is claimed about a quota.
func (m *mockTarget) fail(o metrics.Outcome, us int64) metrics.Exchange {
	x := metrics.Exchange{Outcome: o, Delivered: true, Latency: time.Duration(us) * time.Microsecond}
	switch o {
	case metrics.Timeout:
		x.Delivered, x.Message = false, "mock: no answer"
		if m.limit > 0 {
			x.Latency = m.limit
		}
	case metrics.RateLimited:
		x.Status, x.Executed, x.Message = 429, metrics.No, "mock: too many requests"
	default:
		x.Status, x.Message = 500, "mock: internal error"
	}
	return x
}

func (m *mockTarget) succeed(c *Call, us int64, tokens uint64) metrics.Exchange {
	variable := m.tokensIn - m.static
	x := metrics.Exchange{
		Delivered: true, Executed: metrics.Yes,
		Latency:    time.Duration(us) * time.Microsecond,
		TTFT:       time.Duration(us*ttftPercent/100) * time.Microsecond,
		ServerTime: time.Duration(us*serverPercent/100) * time.Microsecond,
		Usage:      true,
		TokensIn:   m.static + schedule.Between(tokens, variable/2, variable),
		TokensOut:  m.tokensOut,
	}
	if c.Keep {
		x.Text = c.Tool + ": " + string(c.Args)
	}
	return x
}

func (s *mockSession) key(label string) schedule.RuleKey {
	if r := s.rule.Load(); r != nil && r.label == label {
		return r.key
	}
	r := &labelRule{label: label, key: schedule.KeyOf("mock/" + label)}
	s.rule.Store(r)
	return r.key
}

// check names what is wrong with the arguments, empty when they are valid.
func (s *mockSession) check(args []byte) string {
	if v := s.verdict.Load(); v != nil && bytes.Equal(v.args, args) {
		return v.reason
	}
	v := &argsVerdict{args: bytes.Clone(args), reason: checkQuery(args)}
	s.verdict.Store(v)
	return v.reason
}

// checkQuery holds arguments against mockSchema.
func checkQuery(args []byte) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(args, &fields); err != nil || fields == nil {
		return "invalid arguments: want an object"
	}
	query, has := fields["query"]
	switch {
	case !has:
		return "invalid arguments: query is required"
	case query[0] != '"':
		return "invalid arguments: query must be a string"
	}
	return ""
}

// unknownProfile lists the profiles; a controller has suggested the nearest one
// before a unit was ever made.
func unknownProfile(name string) error {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.name
	}
	return fmt.Errorf("target: unknown mock profile %s (valid: %s)", quoted(name), strings.Join(names, ", "))
}

// quoted shows at most 40 bytes of a name that may be anything.
func quoted(name string) string {
	if len(name) > 40 {
		name = name[:40] + "..."
	}
	return fmt.Sprintf("%q", name)
}
