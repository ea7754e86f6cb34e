package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"ordeal/agent/wire"
)

// work is a unit or a share in hand, under a term of its run's lease. It is what
// a probe knows of both: its leave to call, and the rate limits of its fleet.
type work struct {
	ctx    context.Context // ends with the term, the run, or its own cause
	run    *run
	ration *ration
	term   *term
	cancel context.CancelCauseFunc
	unlink func() bool
	timed  bool // a call takes real time: look at the clock before each
	spent  atomic.Pointer[spentError]
}

// begin waits for leave and returns the work under it. Its context ends with ctx,
// too. end must follow.
func (r *run) begin(ctx context.Context) (*work, error) {
	t, err := r.lease.hold(ctx)
	if err != nil {
		return nil, err
	}
	w := &work{run: r, ration: r.ration, term: t, timed: true}
	w.ctx, w.cancel = context.WithCancelCause(t.ctx)
	w.unlink = context.AfterFunc(ctx, func() { w.cancel(context.Cause(ctx)) })
	return w, nil
}

func (w *work) end() {
	w.unlink()
	w.cancel(nil)
	w.run.lease.release()
}

// Take implements probe.Leave.
func (w *work) Take(ctx context.Context) (waited time.Duration, err error) {
	if w.ration.metered.Load() {
		begun := time.Now()
		if err := w.ration.take(ctx); err != nil {
			return 0, w.note(err)
		}
		waited = time.Since(begun)
	}
	if w.timed {
		err = w.term.check()
	}
	return waited, err
}

// Check implements probe.Leave.
func (w *work) Check() error {
	if err := w.term.check(); err != nil {
		return err
	}
	return w.note(w.ration.over())
}

// note remembers that the work ended because its calls were spent.
func (w *work) note(err error) error {
	var spent *spentError
	if errors.As(err, &spent) {
		w.spent.CompareAndSwap(nil, spent)
	}
	return err
}

// Dry implements probe.Quota.
func (w *work) Dry() bool { return w.ration.isDry() }

// Seen implements probe.Quota.
func (w *work) Seen(s wire.QuotaSignal) { w.run.lease.quota(s) }

// Pause implements probe.Quota.
func (w *work) Pause() (number uint64, end time.Time) {
	if p := w.ration.pause.Load(); p != nil {
		return p.number, p.end
	}
	return 0, time.Time{}
}

// released says what ended the work before it was done, when that was not a halt.
func (w *work) released() string {
	switch spent := w.spent.Load(); {
	case errors.Is(context.Cause(w.ctx), ErrLeaseExpired):
		return wire.ByLease
	case spent != nil:
		return spent.why
	}
	return ""
}
