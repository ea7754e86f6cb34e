package roster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ordeal/agent/wire"
)

// ErrTooFew is returned by Wait when not enough agents came.
type ErrTooFew struct {
	Pool     string
	Selector Selector
	Have     int
	Want     int
	Waited   time.Duration
	Refused  []string // "ID: REASON" of each agent that is there and does not fit
}

// shownRefused bounds the refused agents an error lists; the rest is counted.
const shownRefused = 5

// Error says in one line how many there are, who was refused and what to do.
func (e *ErrTooFew) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d agents wanted in pool %s", e.Have, e.Want, e.Pool)
	labels := e.Selector.String()
	if labels != "" {
		b.WriteString(" with " + labels)
	}
	if e.Waited > 0 {
		fmt.Fprintf(&b, " after %v", e.Waited)
	}
	if n := len(e.Refused); n > 0 {
		fmt.Fprintf(&b, "; refused %s", strings.Join(e.Refused[:min(n, shownRefused)], "; "))
		if n > shownRefused {
			fmt.Fprintf(&b, " and %d more", n-shownRefused)
		}
	}
	b.WriteString("; start agents with ordeal-agent --nats URL")
	if e.Pool != wire.DefaultPool {
		b.WriteString(" --pool " + e.Pool)
	}
	for term := range strings.SplitSeq(labels, ",") {
		if term != "" {
			first, _, _ := strings.Cut(term, "|")
			b.WriteString(" --label " + first)
		}
	}
	b.WriteString(", or ask for fewer")
	return b.String()
}

// Wait returns the fitting members once there are as many as least says, or an
// *ErrTooFew after limit; with a limit of 0 it looks once.
func (r *Roster) Wait(ctx context.Context, pool string, sel Selector, least int, limit time.Duration) ([]Member, error) {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		changed := r.fleet.Changed()
		fit, refused := r.Members(pool, sel)
		if len(fit) >= least {
			return fit, nil
		}
		tooFew := &ErrTooFew{Pool: pool, Selector: sel, Have: len(fit), Want: least, Waited: limit, Refused: refused}
		if limit <= 0 {
			return nil, tooFew
		}
		select {
		case <-changed:
		case <-over.C:
			return nil, tooFew
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
