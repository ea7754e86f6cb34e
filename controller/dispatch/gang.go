package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/roster"
)

// ErrNoAgents means that nobody who could take part serves the pool.
var ErrNoAgents = errors.New("no agent serves the pool")

// tries of a gang stage: a level that loses a member is repeated once.
const tries = 2

// gangStage shares the stage's one unit among the agents of the pool, waits
// until all are ready, and starts them together. An attempt that loses a member
// counts for nothing and is repeated once with those that are left; when that
// loses one too, the rest of it counts, marked degraded.
func (d *Dispatcher) gangStage(ctx context.Context, st *plan.Stage, token string, sink Sink) error {
	whole := st.Units[0]
	if d.replayGang(st, sink) {
		return nil
	}
	var outcome merge.Gang
	first, err := d.endEarlier(ctx, st, &outcome)
	if err != nil {
		return err
	}
	var absent []string
	for number, try := first, 0; ; number++ {
		a, err := d.newAttempt(st, &whole, token, number, append(absent, outcome.Lost...))
		if errors.Is(err, ErrNoAgents) {
			if err := d.awaitMembers(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		d.forget(sink)
		err = a.run(ctx, try+1 == tries)
		if err == nil && len(a.record.Lost) > 0 && !a.began { // nothing was sent: the level begins without them
			absent = append(absent, a.record.Lost...)
			d.warn("stage %s begins without %s (%s)", st.Name, strings.Join(a.record.Lost, ", "), a.why)
			continue
		}
		try++
		outcome.Attempts++
		outcome.Lost = append(outcome.Lost, a.record.Lost...)
		if err == nil && len(a.record.Lost) > 0 && try < tries {
			outcome.Repeated += a.sent()
			a.discard(sink)
			d.warn("stage %s lost %s (%s): it is repeated with the others", st.Name, strings.Join(a.record.Lost, ", "), a.why)
			if err := d.outlive(ctx, a.lostAt); err != nil {
				return err
			}
			continue
		}
		a.conclude(st, &outcome, sink)
		return err
	}
}

// awaitMembers returns once somebody serves the pool: the agents of a run may
// have been lost between two of its stages.
func (d *Dispatcher) awaitMembers(ctx context.Context) error {
	poll := time.NewTicker(askEvery)
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
			if _, err := d.members(nil); err == nil {
				return nil
			}
		case err := <-d.trouble:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// forget passes on the losses of what was done before: an agent of the same name
// may be back.
func (d *Dispatcher) forget(sink Sink) {
	for {
		select {
		case l := <-d.here.lost:
			sink.Lost(l.agent)
		default:
			return
		}
	}
}

// outlive waits until a member that was lost can work no more: one that is only
// cut off has its lease.
func (d *Dispatcher) outlive(ctx context.Context, lost time.Time) error {
	select {
	case <-time.After(time.Until(lost.Add(d.opt.LeaseTTL))):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// members of the pool that may take part, by id.
func (d *Dispatcher) members(without []string) ([]roster.Member, error) {
	fit, refused := d.opt.Roster.Members(d.opt.Pool, d.opt.Select)
	fit = slices.DeleteFunc(fit, func(m roster.Member) bool { return slices.Contains(without, m.ID) })
	if len(fit) == 0 && len(refused) > 0 {
		return nil, fmt.Errorf("%w %q (refused: %s)", ErrNoAgents, d.opt.Pool, strings.Join(refused, "; "))
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("%w %q", ErrNoAgents, d.opt.Pool)
	}
	return fit, nil
}
