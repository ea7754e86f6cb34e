package lead

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ordeal/agent/wire"
)

// finishWait bounds the last writes of a run: a server that is restarted is back
// by then.
const finishWait = 30 * time.Second

// End is how a run ended.
type End struct {
	State    wire.RunState
	Reason   string // of stopped and failed
	Verdict  string // one line
	Document []byte // nil = there is none
}

// Finish stores the document of a run and its last state, removes its results
// and gives up the lead, also when ctx has ended. The results stay while there is
// no document and the run did not fail. After an error the record is as it was
// and the run can be resumed: it is a bus.ErrFenced when another controller has
// taken it over, which then stores its own.
//
// The document's name holds the generation, and the record says which one
// counts: a controller that is fenced between the two writes overwrites nothing.
func (l *Leader) Finish(ctx context.Context, end End) error {
	defer l.Close()
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), finishWait, errors.New("the server does not answer"))
	defer cancel()
	l.deny("the run is over")
	name, err := l.storeDocument(ctx, end.Document)
	if err == nil {
		err = l.Update(ctx, func(r *wire.Run) {
			r.State, r.Reason, r.Verdict, r.Document, r.Stage = end.State, end.Reason, end.Verdict, name, ""
		})
	}
	if err != nil {
		return fmt.Errorf("end run %s: %w", l.run, err)
	}
	if name != "" || end.State == wire.Failed {
		return l.opt.Bus.PurgeResults(ctx, l.run)
	}
	return nil
}

// storeDocument returns the name of the stored document. It makes certain of
// the lead first: that of another controller is no room for it.
func (l *Leader) storeDocument(ctx context.Context, document []byte) (string, error) {
	if document == nil {
		return "", nil
	}
	if err := l.Update(ctx, func(*wire.Run) {}); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s/%d", l.run, l.Generation())
	return name, l.opt.Bus.StoreDocument(ctx, name, document)
}
