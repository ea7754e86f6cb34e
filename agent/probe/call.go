package probe

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"ordeal/agent/schema"
	"ordeal/agent/target"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

// Namespaces of operations. The mock draws by them, so the same operation of
// two passes (latency, and again under faults) meets the same target.
const (
	loadLabel      = "load"
	warmupLabel    = "warmup"
	recoveryLabel  = "recovery"
	preflightLabel = "preflight"
	oracleLabel    = "oracle"
)

// caller makes the calls of one worker: through the fault layer, on the
// worker's clock, with its session.
type caller struct {
	box     *toolbox
	session target.Session
	layer   faultproxy.Layer
	timeout time.Duration
	label   string
	level   int
	sent    int64         // calls that went out to the target
	slots   slots         // bounds the calls inside the target; nil = this caller alone
	queued  time.Duration // spent waiting for a slot, and for leave
	may     *may
	out     target.Call      // at hand
	in      metrics.Exchange // what became of it
}

// attempt makes one attempt, counted from 0, of an operation. The exchange is the
// caller's until the next one.
func (c *caller) attempt(ctx context.Context, op uint64, attempt uint32) *metrics.Exchange {
	tool := c.box.of(op)
	c.out = target.Call{Op: op, Attempt: attempt, Label: c.label, Tool: tool.name,
		Args: tool.args(c.box.salt, op), Level: c.level, Keep: tool.output != nil}
	return c.send(ctx)
}

// send makes the call at hand. An exchange is large and a burst is thousands of
// goroutines that each wait in the middle of one: what is made here stays in place,
// so that their stacks stay small.
func (c *caller) send(ctx context.Context) *metrics.Exchange {
	if c.layer.Schedule != nil {
		c.faulted(ctx)
		return &c.in
	}
	c.forward(ctx)
	c.layer.Clock.Advance(c.in.Latency)
	return &c.in
}

// faulted is send through the fault layer.
func (c *caller) faulted(ctx context.Context) {
	c.in = c.layer.Do(ctx, c.out.Op, c.out.Attempt, c.timeout, func(ctx context.Context) metrics.Exchange {
		c.forward(ctx)
		return c.in
	})
}

// forward lets the call at hand go out to the target.
func (c *caller) forward(ctx context.Context) {
	if err := c.admit(ctx); err != nil {
		c.in = notSent(err)
		return
	}
	c.sent++
	if c.slots != nil {
		defer c.slots.free()
	}
	c.in = c.session.Call(ctx, c.out)
}

// admit waits until the caller may call: for its turn, then for leave.
func (c *caller) admit(ctx context.Context) error {
	if c.slots != nil {
		waited, err := c.slots.take(ctx)
		c.queued += waited
		if err != nil {
			return err
		}
	}
	if c.may.leave == nil {
		return nil
	}
	waited, err := c.may.take(ctx)
	c.queued += waited
	if err != nil {
		c.slots.free()
	}
	return err
}

// checkOutput holds a success against the tool's output schema and counts it.
func (c *caller) checkOutput(op uint64, x *metrics.Exchange, t *metrics.Tally) {
	tool := c.box.of(op)
	if tool.output == nil || !x.Ok() {
		return
	}
	t.OutputChecked++
	if err := schema.ValidateOutput(tool.output, x.Structured); err != nil && !errors.Is(err, schema.ErrUndecided) {
		t.OutputInvalid++
		t.Note("answer of " + tool.name + " breaks its outputSchema: " + err.Error())
	}
}

// opLabel names an operation for people: tool#index.
func opLabel(tool string, op uint64) string {
	return tool + "#" + strconv.FormatUint(op, 10)
}

// oneLine makes a text fit a message: one line of at most 200 bytes.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:197], "") + "..."
	}
	return text
}

// refused is the session of a user whom the target did not let in.
type refused struct{ answer metrics.Exchange }

func (r refused) Call(context.Context, target.Call) metrics.Exchange { return r.answer }
