package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ordeal/agent/schema"
	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Bounds of the search for a smaller payload, in calls.
const (
	shrinkTries = 24              // per case
	shrinkMost  = 200             // per unit
	shrinkTime  = 3 * time.Second // per unit: a reproducer is a courtesy, the rest of the cases is the job
)

// contractor sends the malformed calls of one tool.
type contractor struct {
	env     *Env
	unit    *wire.Unit
	session target.Session
	input   *schema.Schema
	output  *schema.Schema // nil when the tool declares none
	result  *wire.ContractResult
	calls   int64
	shrunk  int           // calls spent on shrinking
	spent   time.Duration // and time
	gone    bool          // the target did not come back
	may     *may
}

// contract sends the unit's range of a tool's cases, each after a control call
// with valid arguments. What a reply means is decided by its structure; text is
// kept for people. After a call without a reply the target is asked whether it
// lives, and the session is renewed.
func contract(ctx context.Context, env *Env, u *wire.Unit, res *wire.Result, progress Progress) error {
	c := &contractor{env: env, unit: u, may: env.may(), result: &wire.ContractResult{Tool: u.Contract.Tool.Name, Controls: map[string]int64{}}}
	set, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	res.Contract = c.result
	defer func() { res.Calls = c.calls }()
	c.result.Total, c.result.LeftOut = len(set.Cases)+set.LeftOut, set.LeftOut
	crashes := int64(0)
	for i := u.Ops.From; i < min(u.Ops.To, uint64(len(set.Cases))) && ctx.Err() == nil; i++ {
		if c.gone {
			c.live("the target did not come back; the cases from %d on were not sent", i)
			break
		}
		if !c.work(ctx, i, &set.Cases[i]) {
			break
		}
		if !c.last().Delivered {
			crashes++
		}
		progress(int64(len(c.result.Cases)), crashes, nil)
	}
	return nil
}

func (c *contractor) prepare(ctx context.Context) (schema.Set, error) {
	p := c.unit.Contract
	fail := func(err error) (schema.Set, error) {
		return schema.Set{}, fmt.Errorf("probe: contract of %s: %w", p.Tool.Name, err)
	}
	var err error
	if c.input, err = schema.Compile(p.Tool.InputSchema); err != nil {
		return fail(err)
	}
	if len(p.Tool.OutputSchema) > 0 {
		if c.output, err = schema.Compile(p.Tool.OutputSchema); err != nil {
			c.live("output schema not usable: %v", err)
		}
	}
	set, err := schema.Cases(c.input, p.Baseline, schema.Options{MaxCases: p.MaxCases})
	if err != nil {
		return fail(err)
	}
	if c.session, err = c.env.Target.Session(ctx, 0); err != nil {
		return schema.Set{}, err
	}
	return set, nil
}

// work runs one case after its control; false means that the run was stopped
// and the case says nothing.
func (c *contractor) work(ctx context.Context, i uint64, k *schema.Case) bool {
	control := c.control(ctx, i)
	if control.Outcome == metrics.Cancelled {
		return false
	}
	x := c.send(ctx, "contract:", i, 0, k.Payload)
	if x.Outcome == metrics.Cancelled {
		return false
	}
	c.checkOutput(&x)
	r := wire.CaseResult{
		Index: int(i), Label: k.Label, Kind: string(k.Kind), Path: k.Path, Reference: k.Compat,
		Forbidden: k.Forbidden, Why: k.Why, Carries: k.CarriesBaseline,
		Outcome: x.Outcome, Delivered: x.Delivered, ByText: x.ByText, Message: x.Message,
		ControlOK: control.Ok(), ControlDelivered: control.Delivered,
	}
	c.result.Cases = append(c.result.Cases, r)
	switch last := c.last(); {
	case !x.Delivered && x.Outcome.Measured():
		last.Payload = brief(k.Payload)
		c.revive(ctx, last, "gave no answer")
	case x.Ok() && k.Forbidden:
		last.Payload = brief(c.shrink(ctx, i, k))
	}
	return true
}

func (c *contractor) last() *wire.CaseResult { return &c.result.Cases[len(c.result.Cases)-1] }

// control sends the valid arguments. When it finds the target dead, the case
// before it is what killed it: the target is revived, and asked once more.
func (c *contractor) control(ctx context.Context, i uint64) metrics.Exchange {
	x := c.send(ctx, "control:", i, 0, c.unit.Contract.Baseline)
	if !x.Delivered && x.Outcome.Measured() && len(c.result.Cases) > 0 && c.last().Alive == nil {
		if died := c.revive(ctx, c.last(), "was answered, but the control after it was not"); died && !c.gone {
			x = c.send(ctx, "control:", i, 1, c.unit.Contract.Baseline)
		}
	}
	switch {
	case !x.Outcome.Measured():
	case !x.Delivered:
		c.result.Controls["undelivered"]++
	case x.Ok():
		c.result.Controls["ok"]++
		c.checkOutput(&x)
	default:
		c.result.Controls["rejected"]++
	}
	return x
}

// revive asks whether the target lives after a call that looks like a crash,
// and gets a session to go on with. died reports a process or session that had
// to be started anew.
func (c *contractor) revive(ctx context.Context, r *wire.CaseResult, what string) (died bool) {
	alive, restarted, exit := c.env.Target.Alive(ctx)
	r.Alive, r.Exit = &alive, exit
	died = restarted || exit != "" || !alive
	if died {
		r.Reconnect = &restarted
	}
	session, err := c.env.Target.Session(ctx, 0)
	if c.gone = !alive || err != nil; !c.gone {
		c.session = session
	}
	state := "the target is alive"
	switch {
	case c.gone:
		state = "the target is gone"
	case restarted:
		state = "the target had to be restarted"
	}
	if exit != "" {
		state += " (" + exit + ")"
	}
	c.live("%s %s; %s", r.Label, what, state)
	return died
}

// shrink looks for a smaller payload that the schema forbids for the same
// reason and the tool accepts as well. A tool that calls itself destructive is
// not asked again and again.
func (c *contractor) shrink(ctx context.Context, i uint64, k *schema.Case) json.RawMessage {
	if d := c.unit.Contract.Tool.Destructive; d != nil && *d || c.spent > shrinkTime {
		return k.Payload
	}
	begun := time.Now()
	defer func() { c.spent += time.Since(begun) }()
	tries := uint32(0)
	accepted := func(payload json.RawMessage) bool {
		if ctx.Err() != nil {
			return false
		}
		tries++
		c.shrunk++
		x := c.send(ctx, "shrink:", i, tries, payload)
		return x.Ok()
	}
	return schema.Shrink(c.input, *k, accepted, min(shrinkTries, shrinkMost-c.shrunk))
}

// send makes one call. kind is the namespace of its draws.
func (c *contractor) send(ctx context.Context, kind string, op uint64, attempt uint32, payload json.RawMessage) metrics.Exchange {
	tool := c.unit.Contract.Tool.Name
	p := prepared{name: tool, pieces: [][]byte{payload}}
	if salt := c.unit.Call.OpIDSalt; salt != "" {
		p.pieces = cutAtOpID(payload)
	}
	if _, err := c.may.take(ctx); err != nil {
		return notSent(err)
	}
	c.calls++
	x := c.session.Call(ctx, target.Call{Op: op, Attempt: attempt, Label: kind + tool, Tool: tool,
		Args: p.args(c.unit.Call.OpIDSalt, op), Level: 1, Keep: c.output != nil})
	c.may.report(&x)
	return x
}

func (c *contractor) checkOutput(x *metrics.Exchange) {
	if c.output == nil || !x.Ok() {
		return
	}
	c.result.Output.Checked++
	if err := schema.ValidateOutput(c.output, x.Structured); err != nil && !errors.Is(err, schema.ErrUndecided) {
		c.result.Output.Violations++
		if c.result.Output.First == "" {
			c.result.Output.First = oneLine(err.Error())
		}
	}
}

func (c *contractor) live(format string, args ...any) {
	c.result.Liveness = append(c.result.Liveness, oneLine(fmt.Sprintf(format, args...)))
}
