package probe

import (
	"context"
	"time"

	"ordeal/agent/wire"
	"ordeal/faultproxy"
)

// preflight makes one real call with the chosen arguments: the first operation
// of the unit, clean and unmeasured.
func preflight(ctx context.Context, env *Env, u *wire.Unit, res *wire.Result) error {
	box := newToolbox(&u.Call, false)
	session, err := env.Target.Session(ctx, 0)
	if err != nil {
		return err
	}
	c := caller{box: box, session: session, timeout: u.Target.Timeout, label: preflightLabel, level: 1, may: env.may(),
		layer: faultproxy.Layer{Clock: env.newClock()}}
	x := c.attempt(ctx, u.Ops.From, 0)
	c.may.report(x)
	res.Calls = c.sent
	res.Preflight = &wire.Preflight{Outcome: x.Outcome, Delivered: x.Delivered, LatencyUS: int64(x.Latency / time.Microsecond),
		Message: x.Message, Usage: x.Usage}
	return nil
}
