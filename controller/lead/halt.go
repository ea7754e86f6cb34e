package lead

import (
	"context"
	"errors"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// Halted is the cause of a context that an order to halt has ended.
type Halted struct{ Reason string }

func (h *Halted) Error() string {
	if h.Reason == "" {
		return "halted"
	}
	return "halted: " + h.Reason
}

const (
	// patience is how long a halt leaves it to the controller: an answer comes
	// within milliseconds. Then agents are told past it.
	patience = 400 * time.Millisecond
	// haltWait is how long an answer may take before the run is taken from a
	// controller that does not obey.
	haltWait = 2 * time.Second
	// haltTries bounds how often a halt is beaten by controllers that take over.
	haltTries = 5
)

// Halt stops a run from outside. It returns who leads the run and was told to
// stop it. A run that nobody leads, or whose controller does not answer, it stops
// itself: agents are told, what is queued is removed, and the record is marked
// stopped under a higher generation; holder is empty then. Agents that can be
// reached stop in well under a second either way, the others by their lease.
func Halt(ctx context.Context, b *bus.Bus, run, reason string) (holder string, err error) {
	for range haltTries {
		r, revision, err := b.Run(ctx, run)
		if err != nil {
			return "", err
		}
		if r.State != wire.Running {
			return "", &Over{Run: r}
		}
		answer, err := order(ctx, b, r, reason)
		switch {
		case err == nil && answer.Error != "":
			return answer.Holder, errors.New(answer.Error)
		case err == nil:
			return answer.Holder, nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		}
		if err := seize(ctx, b, r, revision, reason); !errors.Is(err, bus.ErrFenced) {
			return "", err
		}
	}
	return "", errors.New("run " + run + ": its controllers change faster than one can be told to halt; try again")
}

// order tells the controller; when it takes its time, agents are told as well.
func order(ctx context.Context, b *bus.Bus, r *wire.Run, reason string) (wire.Order, error) {
	send := func(wait time.Duration) (wire.Order, error) {
		limited, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		return b.SendOrder(limited, r.ID, wire.Order{Kind: wire.OrderHalt, Reason: reason})
	}
	answer, err := send(patience)
	if err == nil || ctx.Err() != nil {
		return answer, err
	}
	if err := tell(b, r, reason); err != nil {
		return answer, err
	}
	if errors.Is(err, bus.ErrGone) {
		return answer, err
	}
	return send(haltWait - patience)
}

// tell halts the agents of a run.
func tell(b *bus.Bus, r *wire.Run, reason string) error {
	return b.Control(r.ID, wire.Control{Kind: wire.Halt, Generation: r.Generation, Reason: (&Halted{reason}).Error()})
}

// seize stops a run in place of its controller.
func seize(ctx context.Context, b *bus.Bus, r *wire.Run, revision uint64, reason string) error {
	next := clone(r)
	next.State, next.Reason, next.Claim = wire.Stopped, (&Halted{reason}).Error(), newClaim()
	next.Generation++
	// A controller that answered late has renewed in the meantime and is asked
	// again: seize fails with bus.ErrFenced.
	if _, err := b.UpdateRun(ctx, &next, revision); err != nil {
		return err
	}
	// Agents learn the generation, so that nothing the old controller sends when
	// it wakes moves them.
	if err := tell(b, &next, reason); err != nil {
		return err
	}
	return b.Purge(ctx, "*", r.ID)
}
