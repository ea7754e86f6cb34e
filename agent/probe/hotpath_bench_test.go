package probe

import (
	"context"
	"testing"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// instant is a target on the real clock that answers at once: what a call of it
// costs is the engine's own.
type instant struct{}

func (instant) Survey(context.Context) (*wire.Survey, error)               { return &wire.Survey{}, nil }
func (instant) Session(context.Context, int) (target.Session, error)       { return instant{}, nil }
func (instant) Alive(context.Context) (alive, restarted bool, exit string) { return true, false, "" }
func (instant) Virtual() bool                                              { return false }
func (instant) Close(context.Context) error                                { return nil }

func (instant) Call(_ context.Context, c target.Call) metrics.Exchange {
	return metrics.Exchange{Delivered: true, Executed: metrics.Yes, Latency: time.Duration(200+c.Op%4096) * time.Microsecond, BytesIn: 180, BytesOut: 104, Status: 200}
}

// granted is leave as an agent gives it while its lease lasts.
type granted struct{}

func (granted) Take(context.Context) (time.Duration, error) { return 0, nil }
func (granted) Check() error                                { return nil }

// BenchmarkHotPath is one call of a closed loop on the real clock: all that the
// engine adds to what the target costs. Callers is how many share the machine.
func BenchmarkHotPath(b *testing.B) {
	rows := []struct {
		name string
		load wire.Load
	}{
		{"1Caller", wire.Load{Workers: 1, Level: 1}},
		{"32Callers", wire.Load{Workers: 32, Level: 32}},
		{"32CallersPeriods", wire.Load{Workers: 32, Level: 32, Period: time.Second}},
		{"32CallersPaced", wire.Load{Workers: 32, Level: 32, BackoffMax: time.Second, BackoffBudget: time.Second}},
	}
	for _, r := range rows {
		b.Run(r.name, func(b *testing.B) {
			u := loadUnit(uint64(b.N), r.load)
			b.ReportAllocs()
			cpu := CPUTime()
			defer func() { b.ReportMetric(float64(CPUTime()-cpu)/float64(b.N), "cpu-ns/op") }()
			if res := Run(b.Context(), Env{Target: instant{}, Leave: granted{}}, u, nil); res.Failure != nil || res.Tally.Calls() != int64(b.N) {
				b.Fatalf("%d calls of %d, failure %+v", res.Tally.Calls(), b.N, res.Failure)
			}
		})
	}
}
