package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

const (
	pings = 8 // per agent and measurement; the one of the smallest round trip counts
	// abreast bounds how many agents are measured at once: more would measure
	// the queue in front of this process.
	abreast = 16
	// keepFor is how long an older, tighter reading may stand for a later one.
	keepFor = time.Minute
	// drift of two clocks against each other, parts per million: more than
	// quartz and NTP's slewing show, so that a widened bound still holds.
	driftPPM = 50
)

// ErrNoAnswer is in the reading of an agent that is connected and did not
// answer within wire.AskWait: it hangs, or the network loses what it says.
var ErrNoAnswer = errors.New("no answer")

// Reading is one agent's clock.
type Reading struct {
	Offset time.Duration // its clock minus the controller's
	Bound  time.Duration // half of the round trip: at At, the true offset was within Offset ± Bound
	At     time.Time
	Err    error // bus.ErrGone, ErrNoAnswer or what else prevented it; then nothing else is set
}

// boundAt widens the bound by what the clocks may have drifted apart since.
func (r Reading) boundAt(t time.Time) time.Duration {
	return r.Bound + t.Sub(r.At)*driftPPM/1_000_000
}

// Clock measures the clocks of agents as NTP does (RFC 5905 §8): a ping is sent
// at t0 and answered at t1 with the agent's clock, read in between, so offset =
// clock - (t0+t1)/2 is wrong by (t1-t0)/2 at most. Every id has a reading in the
// answer.
func (r *Roster) Clock(ctx context.Context, ids []string) map[string]Reading {
	readings := make([]Reading, len(ids))
	slots := make(chan struct{}, abreast)
	var wg sync.WaitGroup
	for i, id := range ids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			readings[i] = r.measure(ctx, id)
		})
	}
	wg.Wait()
	all := make(map[string]Reading, len(ids))
	for i, id := range ids {
		all[id] = readings[i]
	}
	return all
}

// measure takes the best of a few pings, or an earlier reading that is better
// still. One ping that failed does not spoil those that came back.
func (r *Roster) measure(ctx context.Context, id string) Reading {
	var best Reading
	var failed error
	for range pings {
		one, err := r.ping(ctx, id)
		if err != nil {
			failed = err
			break
		}
		if best.At.IsZero() || one.Bound < best.Bound {
			best = one
		}
	}
	if errors.Is(failed, bus.ErrGone) {
		r.Gone(id)
		r.forget(id)
		return Reading{Err: failed}
	}
	if best.At.IsZero() {
		return Reading{Err: failed}
	}
	return r.keep(id, best)
}

func (r *Roster) ping(ctx context.Context, id string) (Reading, error) {
	limited, cancel := context.WithTimeoutCause(ctx, wire.AskWait, ErrNoAnswer)
	defer cancel()
	t0 := r.clock.Now()
	ready, err := r.bus.Ask(limited, id, wire.Request{Kind: wire.Ping})
	t1 := r.clock.Now()
	switch {
	case err != nil && errors.Is(context.Cause(limited), ErrNoAnswer):
		return Reading{}, fmt.Errorf("agent %s: %w within %v", id, ErrNoAnswer, wire.AskWait)
	case err != nil:
		return Reading{}, err
	case ready.Failure != nil:
		return Reading{}, fmt.Errorf("ping agent %s: %s", id, ready.Failure.Message)
	case ready.Clock == 0:
		return Reading{}, fmt.Errorf("ping agent %s: it did not say its clock", id)
	}
	half := (t1-t0)/2 + 1 // rounded up
	return Reading{Offset: time.Duration(ready.Clock - t0 - (t1-t0)/2), Bound: time.Duration(half), At: time.Now()}, nil
}

// keep stores a reading and returns the tightest of the recent ones.
func (r *Roster) keep(id string, fresh Reading) Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.gone, id)
	r.readings[id] = append(recent(r.readings[id], fresh), fresh)
	return tightest(r.readings[id], fresh.At)
}

// recent drops the readings that are too old, and those that contradict the
// fresh one: they are of an earlier process of that name, or its clock was
// stepped.
func recent(readings []Reading, fresh Reading) []Reading {
	return slices.DeleteFunc(readings, func(old Reading) bool {
		apart := (old.Offset - fresh.Offset).Abs()
		return fresh.At.Sub(old.At) > keepFor || apart > old.boundAt(fresh.At)+fresh.Bound
	})
}

// tightest is the reading that bounds the offset best at t, as of t.
func tightest(readings []Reading, t time.Time) Reading {
	best := slices.MinFunc(readings, func(a, b Reading) int { return cmp.Compare(a.boundAt(t), b.boundAt(t)) })
	return Reading{Offset: best.Offset, Bound: best.boundAt(t), At: t}
}

func (r *Roster) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.readings, id)
}
