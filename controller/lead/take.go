package lead

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

const (
	// whoWait bounds the answer to one question who leads. A process that was just
	// killed may still be asked: nobody answers, and the next one finds it gone. A
	// leader that is further away than this shows in the record.
	whoWait = 400 * time.Millisecond
	// comeBack is more than a connection takes that is made again after a server
	// was restarted (see bus.Link): who is not there for so long is gone.
	comeBack = 750 * time.Millisecond
	// margin is what the record of a silent controller is watched beyond its TTL,
	// for clocks that differ in speed.
	margin = time.Second
	// watchEvery is how often the question is asked and the record read.
	watchEvery = 250 * time.Millisecond
)

// Led is returned by Take for a run whose controller lives.
type Led struct{ Run, Holder string }

func (l *Led) Error() string {
	return fmt.Sprintf("run %s is led by %s; halt it there or wait", l.Run, l.Holder)
}

// Over is returned by Take and Halt for a run at which there is nothing more to
// do.
type Over struct{ Run *wire.Run }

func (o *Over) Error() string {
	r := o.Run
	state := string(r.State)
	if r.Reason != "" {
		state += " (" + r.Reason + ")"
	}
	next := "start it again, it has no document"
	switch {
	case r.Document != "":
		next = "see ordeal runs report " + r.ID
	case takeable(r):
		next = "ordeal runs resume " + r.ID + " goes on with it"
	}
	return fmt.Sprintf("run %s is %s: %s", r.ID, state, next)
}

// Take leads a run on from where its controller vanished, under the next
// generation, and returns the record as that controller left it. A run that
// [Halt] stopped without its controller may be taken too, since nobody has made a
// document of what it measured. *Led means that its controller lives, *Over that
// there is nothing to do, bus.ErrNoRun that there is no such run. It lasts up to
// the TTL and a few seconds when the controller is silent.
func Take(ctx context.Context, run string, opt Options) (*Leader, *wire.Run, error) {
	if err := opt.fill(); err != nil {
		return nil, nil, err
	}
	for {
		f, err := find(ctx, run, &opt)
		if err != nil {
			return nil, nil, err
		}
		l, err := f.take(ctx)
		if errors.Is(err, bus.ErrFenced) { // somebody was faster, and will answer now
			continue
		}
		return l, f.record, err
	}
}

// former is a run as its last controller left it.
type former struct {
	opt      *Options
	record   *wire.Run
	revision uint64
	read     time.Time // when the record had been read
	silent   bool      // left alone for the TTL and the margin: no lease of its time is left
	told     bool
}

// find reads a run and makes certain that nobody leads it.
func find(ctx context.Context, run string, opt *Options) (*former, error) {
	r, revision, err := opt.Bus.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	f := &former{opt: opt, record: r, revision: revision, read: time.Now()}
	if !takeable(r) {
		return nil, &Over{Run: r}
	}
	return f, f.vacant(ctx)
}

// takeable tells a run that has work left.
func takeable(r *wire.Run) bool {
	return r.State == wire.Running || r.State == wire.Stopped && r.Document == ""
}

// vacant is nil once nobody leads the run: nobody was there for long enough, or
// the record of a silent controller was left alone for long enough. Reading it may
// fail for a while: the compare-and-set decides.
func (f *former) vacant(ctx context.Context) error {
	var gone time.Time // since when nobody is there
	until := f.read.Add(f.record.TTL + margin)
	for {
		sign, holder := Look(ctx, f.opt.Bus, f.record.ID)
		switch {
		case sign == Answers:
			return &Led{Run: f.record.ID, Holder: holder}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case sign == Silent:
			f.hush(until)
			gone = time.Time{}
		case gone.IsZero():
			gone = time.Now()
		case time.Since(gone) >= comeBack:
			return nil
		}
		if f.silent = !time.Now().Before(until); f.silent {
			return nil
		}
		if err := sleep(ctx, min(watchEvery, time.Until(until))); err != nil {
			return err
		}
		if err := f.changed(ctx); err != nil {
			return err
		}
	}
}

// hush says once that there is a wait.
func (f *former) hush(until time.Time) {
	if f.told {
		return
	}
	f.told = true
	f.opt.Log(fmt.Sprintf("run %s: its controller, %s, does not answer; taking over in %v unless it renews its lease",
		f.record.ID, f.record.Holder, time.Until(until).Round(100*time.Millisecond)))
}

// changed is not nil when somebody has written the record since it was read.
func (f *former) changed(ctx context.Context) error {
	r, revision, err := f.opt.Bus.Run(ctx, f.record.ID)
	switch {
	case err != nil || revision <= f.revision:
		return nil
	case !takeable(r):
		return &Over{Run: r}
	}
	return &Led{Run: r.ID, Holder: r.Holder}
}

// take writes the next generation; bus.ErrFenced when the record has changed.
func (f *former) take(ctx context.Context) (*Leader, error) {
	l := newLeader(ctx, *f.opt, f.record)
	r := &l.record
	r.Generation++
	r.State, r.Reason = wire.Running, ""
	if f.opt.TTL > 0 {
		r.TTL = f.opt.TTL
	}
	if !f.silent {
		l.inherited = time.Now().Add(f.record.TTL)
	}
	err := l.begin(ctx, func() (uint64, error) { return f.opt.Bus.UpdateRun(ctx, r, f.revision) })
	if err != nil {
		return nil, err
	}
	return l, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
