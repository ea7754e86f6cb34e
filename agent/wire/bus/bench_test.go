package bus

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
)

// BenchmarkUnit is a whole empty unit on streams in files: queued, pulled by one
// of four agents over sockets, its result stored, acknowledged.
func BenchmarkUnit(b *testing.B) {
	url := addr(serve(b, nil))
	controller := dial(b, Link{URLs: url})
	prepare(b, controller, Files, queue)
	var left atomic.Int64
	left.Store(int64(b.N))
	units := make([]*wire.Unit, b.N)
	for i := range units {
		units[i] = unit("r1", fmt.Sprint("u", i))
	}
	var pullers sync.WaitGroup
	queues := make([]*Queue, 4)
	agents := make([]*Bus, len(queues))
	for i := range queues {
		agents[i] = dial(b, Link{URLs: url, Agent: fmt.Sprint("a", i)})
		queues[i] = join(b, agents[i], queue)
	}
	b.ResetTimer()
	for i, q := range queues {
		pullers.Go(func() {
			for left.Load() > 0 {
				d, err := q.Next(b.Context(), 100*time.Millisecond)
				if err != nil {
					b.Error(err)
					return
				}
				if d == nil {
					continue
				}
				if err := agents[i].PublishResult(b.Context(), result("r1", fmt.Sprint("a", i), d.Unit.ID)); err != nil {
					b.Error(err)
					return
				}
				if err := d.Done(b.Context()); err != nil {
					b.Error(err)
					return
				}
				left.Add(-1)
			}
		})
	}
	if err := controller.PublishUnits(b.Context(), queue, units); err != nil {
		b.Fatal(err)
	}
	pullers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "units/s")
}

// BenchmarkResults is how fast a controller reads results that are stored.
func BenchmarkResults(b *testing.B) {
	url := addr(serve(b, func(o *server.Options) { o.MaxPayload = wire.MaxPayload }))
	controller := dial(b, Link{URLs: url})
	prepare(b, controller, Files, queue)
	const stored = 2000
	for i := range stored {
		if err := controller.PublishResult(b.Context(), result("r1", "a1", fmt.Sprint("u", i))); err != nil {
			b.Fatal(err)
		}
	}
	n := 0
	for b.Loop() {
		if _, err := controller.StoredResults(b.Context(), "r1", func(*wire.Result) { n++ }); err != nil {
			b.Fatal(err)
		}
	}
	if n != stored*b.N {
		b.Fatalf("%d results, want %d", n, stored*b.N)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "results/s")
}
