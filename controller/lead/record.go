package lead

import (
	"context"

	"ordeal/agent/wire"
)

// Record is the record of the run as this leader would store it.
func (l *Leader) Record() wire.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return clone(&l.record)
}

// Update changes the record and returns once that is stored, however long the
// server is away; with the cause of ctx when it ends first, and a bus.ErrFenced
// when the lead is lost. Then the change may or may not be stored. change must
// not call the leader.
func (l *Leader) Update(ctx context.Context, change func(*wire.Run)) error {
	number := l.change(change, true)
	for {
		l.mu.Lock()
		stored, progress, cause, over := l.stored, l.progress, l.cause, l.over
		l.mu.Unlock()
		switch {
		case stored >= number:
			return nil
		case cause != nil:
			return cause
		case over:
			return errClosed
		}
		select {
		case <-progress:
		case <-l.lost:
		case <-l.quit:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Note changes the record, to be stored with what else is noted within half a
// second: for what changes often and is only looked at.
func (l *Leader) Note(change func(*wire.Run)) { l.change(change, false) }

// change applies a change and returns its number.
func (l *Leader) change(change func(*wire.Run), urgent bool) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.record)
	l.changes++
	l.urgent = l.urgent || urgent
	l.wake()
	return l.changes
}
