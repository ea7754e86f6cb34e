package probe

import (
	"cmp"
	"context"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// revive starts a server anew that died of a call, so that one crash fails the
// calls in flight and not the rest of a stage. The target bounds how often; each
// time is noted. A server reached over HTTP is not ours to start.
func (env *Env) revive(ctx context.Context, u *wire.Unit, x *metrics.Exchange, t *metrics.Tally) {
	if x.Outcome != metrics.Connection || x.Origin != metrics.FromTarget || env.Target.Virtual() || u.Target.Transport == wire.StreamableHTTP {
		return
	}
	if _, restarted, exit := env.Target.Alive(ctx); restarted {
		t.Note("the server died in mid-run and was started again: " + cmp.Or(exit, "no exit status"))
	}
}
