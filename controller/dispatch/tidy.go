package dispatch

import (
	"context"
	"time"

	"ordeal/agent/wire"
)

// ackGrace is how long agents have to acknowledge the last units of a stage.
const ackGrace = time.Second

// tidy takes the units of a finished stage off the queue that nobody acknowledges:
// an agent that was cut off behind its result cannot. Else they would be handed out
// again wire.AckWait after their last sign of life, and the target would see them
// once more for nothing. It does so beside the next stage.
func (d *Dispatcher) tidy(units []wire.Unit) {
	d.tidying.Go(func() {
		select {
		case <-d.done:
			return
		case <-time.After(ackGrace):
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeWait)
		defer cancel()
		queued, err := d.opt.Bus.QueuedUnits(ctx, d.queue, d.opt.Run) // window of them at most
		if err != nil {
			return // the server is away: what is handed out again is counted
		}
		for i := range units {
			if queued[units[i].ID] && d.opt.Sure() {
				_ = d.opt.Bus.Remove(ctx, d.queue, d.opt.Run, units[i].ID) // as above
			}
		}
	})
}
