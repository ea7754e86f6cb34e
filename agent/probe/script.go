package probe

import (
	"context"
	"errors"
	"time"

	"ordeal/agent/target"
	"ordeal/metrics"
)

// perform works one operation of a workload: the calls of its scenario one after
// the other, until one fails. The first is late behind the time the operation was
// due; those after it begin when they begin. What decided the operation is its last
// exchange.
//
// A step is an attempt of its operation, as far as draws go: each has its own.
func (w *worker) perform(ctx context.Context, op uint64, at, late time.Duration) (last *metrics.Exchange) {
	run, due, measured := w.script, at, w.load.course.measures(at)
	run.Start(op, int(w.number))
	for step := uint32(0); run.Next(); step++ {
		if step > 0 {
			w.crew.giveBook(w) // others may need it meanwhile
			if run.Wait > 0 && w.clock.Sleep(ctx, run.Wait) != nil {
				w.in = notSent(context.Cause(ctx))
				return &w.in
			}
			due, late = w.clock.Now(), 0
		}
		w.out = target.Call{Op: op, Attempt: step, Label: w.label, Tool: run.Tool, Args: run.Args, Level: w.level, Keep: run.Keep}
		last = w.send(ctx)
		if w.may.over {
			return last
		}
		w.extract(last)
		w.note(ctx, op, due, late, last)
		if w.load.course.measures(due) {
			w.book.steps.Add(run.ID, last.Outcome, last.Latency+late)
		}
		if !last.Ok() {
			break
		}
	}
	if measured && w.book != nil {
		w.book.steps.Add(run.Whole, last.Outcome, w.begun-at)
	}
	return last
}

// extract takes what later steps need out of a success. An answer without it is
// none: the scenario cannot go on.
func (w *worker) extract(x *metrics.Exchange) {
	if !x.Ok() || !w.script.Keep {
		return
	}
	if err := w.script.Take(x.Structured, x.Text); err != nil {
		x.Outcome, x.Message = metrics.InvalidResponse, oneLine(err.Error())
	}
}

// opener is a target that can open a session for one operation. done closes it,
// also after ctx has ended.
type opener interface {
	OneSession(ctx context.Context, user int) (s target.Session, done func(), err error)
}

var errNoOpener = errors.New("probe: this target keeps no sessions that could be opened for each call; let each user keep its own")

// alone works an operation in a session of its own. Where the target does not let
// it in, the operation fails the way a caller without a connection fails.
func (w *worker) alone(ctx context.Context, op uint64, at, late time.Duration) *metrics.Exchange {
	s, done, err := w.load.opener.OneSession(ctx, int(w.number))
	if err != nil {
		w.shut(ctx, err)
	} else {
		defer done()
		w.session = w.load.env.occupancy.session(s)
	}
	return w.operate(ctx, op, at, late)
}
