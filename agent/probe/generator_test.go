package probe

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

func lagOf(n int64, us int64) metrics.Dist {
	var d metrics.Dist
	d.RecordN(us, n)
	return d
}

func TestSaturation(t *testing.T) {
	rows := []struct {
		name  string
		g     wire.Generator
		paced bool
		p50   int64
		want  string // part of the reason
	}{
		{"Calm", wire.Generator{CPUMilli: 300, Lag: lagOf(1000, 100)}, true, 5000, ""},
		{"PacerLate", wire.Generator{CPUMilli: 300, Lag: lagOf(1000, 2500)}, true, 5000, "2500 µs late at p99, more than 2000"},
		{"LateBesideSlowTarget", wire.Generator{CPUMilli: 300, Lag: lagOf(1000, 2500)}, true, 50_000, ""},
		{"TimersMayBeLate", wire.Generator{CPUMilli: 300, Lag: lagOf(1000, 9000)}, false, 5000, ""},
		{"Starved", wire.Generator{CPUMilli: 300, Lag: lagOf(1000, 11_000)}, false, 5000, "more than 10000"},
		{"Busy", wire.Generator{CPUMilli: 1750, Lag: lagOf(1000, 100)}, true, 5000, "used 87 % of 2 cores"},
		{"AtTheLimit", wire.Generator{CPUMilli: 1700, Lag: lagOf(1000, 100)}, true, 5000, ""},
		{"TooShortToTell", wire.Generator{CPUMilli: 2000, Lag: lagOf(5, 90_000)}, false, 5000, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got := saturation(&r.g, r.paced, 2, r.p50)
			if (got == "") != (r.want == "") || !strings.Contains(got, r.want) {
				t.Errorf("got %q, want %q", got, r.want)
			}
		})
	}
}

// TestMeterSeesCPU burns one core for a moment.
func TestMeterSeesCPU(t *testing.T) {
	m := startMeter(&Env{Target: &fake{}}, true)
	for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
	}
	g := m.stop(metrics.NewTally())
	if limit := int64(runtime.NumCPU()) * 1100; g.CPUMilli < 50 || g.CPUMilli > limit {
		t.Errorf("CPU %d thousandths of a core", g.CPUMilli)
	}
}

// TestKernelWait: never early, and stopped by its context.
func TestKernelWait(t *testing.T) {
	done := make(chan struct{})
	go func() { // the waiter keeps the thread it locks
		defer close(done)
		wait, clock := newWaiter(false), faultproxy.NewRealClock()
		for due := time.Millisecond; due < 30*time.Millisecond; due += 3 * time.Millisecond {
			if err := wait(t.Context(), clock, due); err != nil || clock.Now() < due {
				t.Errorf("woke up at %v, due %v: %v", clock.Now(), due, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := wait(ctx, clock, time.Hour); err == nil || clock.Now() > 10*time.Second {
			t.Errorf("a stopped wait returned %v at %v", err, clock.Now())
		}
	}()
	<-done
}
