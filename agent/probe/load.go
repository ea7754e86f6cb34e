package probe

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/agent/workload"
	"ordeal/faultproxy"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics"
)

// load is one load unit at work.
type load struct {
	env      *Env
	unit     *wire.Unit
	box      *toolbox
	plan     *workload.Plan // of the operations; nil: each is one call of the box
	opener   opener         // of a session for each operation; nil: each user keeps one
	course   course
	faults   *schedule.Schedule
	share    share
	slots    slots
	clock    faultproxy.Clock // of the unit: real, or idle beside virtual workers
	gate     *gate            // of the unit; workers of a virtual target have their own
	meter    *meter
	crew     *crew // of an open loop on a real target
	periods  *periods
	progress Progress

	mu           sync.Mutex // guards what is below
	tally        *metrics.Tally
	outside      int64 // calls that were not due in the measured part
	outsideFails int64
	steps        *workload.Steps
	stays        []stay
	sent         int64 // calls that went out, warm-up included
}

func runLoad(ctx context.Context, env *Env, u *wire.Unit, res *wire.Result, progress Progress) error {
	l, err := newLoad(env, u, progress)
	if err != nil {
		return err
	}
	opened := sessionsOf(env.plain)
	defer func() {
		res.Calls = l.sent
		res.Tally = l.tally
		res.Periods, res.Period = l.periods.seal(l.course.length)
		res.Sessions = since(opened, sessionsOf(env.plain))
		if l.steps != nil {
			res.Steps = l.steps.Tallies()
		}
	}()
	if u.Load.MilliRate > 0 {
		return l.open(ctx, res)
	}
	return l.closed(ctx, res)
}

func newLoad(env *Env, u *wire.Unit, progress Progress) (l *load, err error) {
	if u.Load.Unpaced {
		deaf := *env
		deaf.Quota = nil
		env = &deaf
	}
	l = &load{env: env, unit: u, box: newToolbox(&u.Call, u.Load.CheckOutput), share: shareOf(u), progress: progress, tally: metrics.NewTally()}
	if l.faults, err = faultSchedule(u.Faults); err != nil {
		return nil, err
	}
	if l.course, err = courseOf(u); err != nil {
		return nil, err
	}
	l.periods = newPeriods(u)
	if u.Workload == nil {
		return l, nil
	}
	if l.plan, err = workload.Compile(u.Workload); err != nil {
		return nil, fmt.Errorf("probe: unit %s: %w", u.ID, err)
	}
	l.steps = l.plan.NewSteps()
	return l, l.perCall()
}

// perCall finds out how to open a session for each operation, where the workload
// asks for that.
func (l *load) perCall() error {
	if !l.unit.Workload.PerCall || l.env.Target.Virtual() { // a virtual user has no connection
		return nil
	}
	var can bool
	if l.opener, can = l.env.plain.(opener); !can {
		return errNoOpener
	}
	return nil
}

// sessions is a target that counts those it opens.
type sessions interface {
	Sessions() (opened, reopened int64)
}

func sessionsOf(t target.Target) (s wire.Sessions) {
	if counts, ok := t.(sessions); ok {
		s.Opened, s.Reopened = counts.Sessions()
	}
	return s
}

func since(before, now wire.Sessions) wire.Sessions {
	return wire.Sessions{Opened: now.Opened - before.Opened, Reopened: now.Reopened - before.Reopened}
}

// begin ends the preparations: it waits for the others of a gang and starts the
// clock. Without a beginning the calls of the warm-up are all there is.
func (l *load) begin(ctx context.Context, workers ...*worker) error {
	if l.env.Ready != nil {
		if err := l.env.Ready(ctx); err != nil {
			l.count(workers)
			return err
		}
	}
	l.clock = l.env.newClock()
	runtime.Gosched() // shares of other agents in this process, which are due now, start their clocks first
	l.gate = newGate(l.unit.Load, l.env.Quota)
	return nil
}

// count adds the calls that workers have made so far.
func (l *load) count(workers []*worker) {
	for _, w := range workers {
		if w != nil {
			l.sent += w.sent
			w.sent = 0
		}
	}
}

// add moves what a book holds into the unit's.
func (l *load) add(b *book) {
	b.ledger.flush()
	l.meter.served(b.tally)
	l.meter.made(b.sent)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent += b.sent
	b.sent = 0
	l.tally.Merge(b.tally)
	if b.steps != nil {
		l.steps.Merge(b.steps)
		b.steps.Reset()
	}
	l.tell(b.tally)
	b.tally.Reset()
	if b.aside != nil && b.aside.Calls() > 0 {
		l.outside += b.aside.Calls()
		l.outsideFails += b.aside.Failures()
		l.tell(b.aside)
		b.aside.Reset()
	}
}

// tell tells of what was observed since the last time. mu is held.
func (l *load) tell(seen *metrics.Tally) {
	l.progress(l.tally.Calls()+l.outside, l.tally.Failures()+l.outsideFails, seen)
}

// stayed notes how long a caller was at work.
func (l *load) stayed(s stay) {
	if l.periods == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stays = append(l.stays, s)
}
