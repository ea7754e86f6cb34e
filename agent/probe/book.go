package probe

import (
	"time"

	"ordeal/agent/workload"
	"ordeal/metrics"
)

// flushCalls is how many calls a book holds before it is added to the unit's
// tally; flushEvery bounds the wait of a slow target's progress.
const (
	flushCalls = 512
	flushEvery = 200 * time.Millisecond
)

// book is what one goroutine has counted and not yet added to the unit's: calls
// meet no lock.
type book struct {
	load   *load
	tally  *metrics.Tally
	aside  *metrics.Tally // of calls outside the measured part; nil until there is one
	ledger ledger
	steps  *workload.Steps // nil without a workload
	sent   int64           // calls that went out
	kept   int             // calls in it
	added  time.Duration   // when it was last added to the unit's
}

func (l *load) newBook() *book {
	b := &book{load: l, tally: metrics.NewTally(), ledger: ledger{periods: l.periods, sends: l.course.shape == nil}}
	if l.plan != nil {
		b.steps = l.plan.NewSteps()
	}
	return b
}

// of is the tally of a call that was due, or begun, at a time.
func (b *book) of(at time.Duration) *metrics.Tally {
	if b.load.course.measures(at) {
		return b.tally
	}
	if b.aside == nil {
		b.aside = metrics.NewTally()
	}
	return b.aside
}

// settle adds the book to the unit's when there is enough in it.
func (b *book) settle(now time.Duration) {
	b.kept++
	if b.kept < flushCalls && (b.load.env.Target.Virtual() || now-b.added < flushEvery) {
		return
	}
	b.finish()
	b.added = now
}

// finish adds what is left.
func (b *book) finish() {
	b.load.add(b)
	b.kept = 0
}
