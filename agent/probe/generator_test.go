package probe

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"ordeal/faultproxy"
	"ordeal/metrics"
)

func TestSaturation(t *testing.T) {
	second := func(s signals) signals {
		s.span, s.cores = time.Second, 2
		if s.ticks == 0 {
			s.ticks = 1000
		}
		return s
	}
	rows := []struct {
		name  string
		s     signals
		want  string // part of the reason
		short float64
	}{
		{"Calm", signals{paced: true, cpu: 300 * time.Millisecond, late: 100, service: 5000}, "", 0},
		{"PacerLate", signals{paced: true, late: 1500, service: 5000}, "1500 µs late at p99, more than 1000", 0},
		{"FewTicks", signals{paced: true, late: 1500, service: 5000, ticks: 50}, "", 0},
		{"LateBesideSlowTarget", signals{paced: true, late: 2500, service: 50_000}, "", 0},
		{"TimersMayBeLate", signals{late: 9000, service: 5000}, "", 0},
		{"Starved", signals{late: 11_000, service: 5000}, "more than 10000", 0},
		{"Busy", signals{paced: true, cpu: 1750 * time.Millisecond}, "used 87 % of 2 cores", 875.0 / 850},
		{"AtTheLimit", signals{paced: true, cpu: 1700 * time.Millisecond}, "", 0},
		{"Crowded", signals{paced: true, cpu: 600 * time.Millisecond, wait: 600 * time.Millisecond}, "waited for a CPU for 30 % of the time of 2 cores", 2},
		{"CrowdedBesideSlowTarget", signals{paced: true, cpu: 600 * time.Millisecond, wait: 600 * time.Millisecond, calls: 1000, service: 50_000}, "", 0},
		{"CrowdedAndBusy", signals{paced: true, cpu: 900 * time.Millisecond, wait: 600 * time.Millisecond, calls: 1000, service: 50_000}, "waited for a CPU", 1500.0 / 900},
		{"CrowdedBesideFastTarget", signals{paced: true, cpu: 600 * time.Millisecond, wait: 600 * time.Millisecond, calls: 1000, service: 1000}, "waited for a CPU", 2},
		{"HalfIssued", signals{paced: true, fellBack: 500 * time.Millisecond}, "issued 50.0 % of the arrivals", 2},
		{"BusyAndHalfIssued", signals{paced: true, cpu: 2 * time.Second, fellBack: 500 * time.Millisecond}, "used 100 % of 2 cores", 2 / 0.85},
		{"CaughtUp", signals{paced: true, fellBack: -500 * time.Millisecond}, "", 0},
		{"Collecting", signals{paced: true, pause: 60 * time.Millisecond}, "garbage collection for 6 % of the time", 0},
		{"SlotsLate", signals{paced: true, handed: 1000, tardy: 11}, "1.1 % of its calls began more than 1000 µs", 0},
		{"FewSlotsLate", signals{paced: true, handed: 1000, tardy: 10}, "", 0},
		{"Files", signals{paced: true, files: 3}, "3 calls found no descriptor left", 0},
		{"Ports", signals{ports: 3}, "3 calls found no local port left", 0},
		{"Memory", signals{memory: 960}, "used 96 % of the memory", 0},
		{"TooShortToTell", signals{cpu: 2 * time.Second, late: 90_000, ticks: 5}, "", 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := second(r.s)
			got := s.reason()
			if (got == "") != (r.want == "") || !strings.Contains(got, r.want) {
				t.Errorf("got %q, want %q", got, r.want)
			}
			if short := s.short(); got != "" && math.Abs(short-r.short) > 0.01 {
				t.Errorf("short %.3f times, want %.3f", short, r.short)
			}
		})
	}
}

// TestMeterSeesCPU burns one core for a moment.
func TestMeterSeesCPU(t *testing.T) {
	env := &Env{Target: &fake{}}
	m := newMeter(env, true)
	m.start(env)
	began := time.Now()
	for start := CPUTime(); CPUTime()-start < 50*time.Millisecond; {
	}
	g := m.stop(metrics.NewTally())
	used := time.Duration(g.CPUMilli) * time.Since(began) / 1000
	if limit := int64(runtime.NumCPU()) * 1100; used < 40*time.Millisecond || g.CPUMilli > limit {
		t.Errorf("CPU %d thousandths of a core, %v; want at least 40ms", g.CPUMilli, used)
	}
}

// TestWaiter: never early, and stopped by its context.
func TestWaiter(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	clock := faultproxy.NewRealClock()
	wait, done := newWaiter(ctx, false)
	defer done()
	for due := time.Millisecond; due < 30*time.Millisecond; due += 3 * time.Millisecond {
		if err := wait(ctx, clock, due); err != nil || clock.Now() < due {
			t.Errorf("woke up at %v, due %v: %v", clock.Now(), due, err)
		}
	}
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := wait(ctx, clock, time.Hour); !errors.Is(err, context.Canceled) || clock.Now() > 10*time.Second {
		t.Errorf("a stopped wait returned %v at %v", err, clock.Now())
	}
	if err := wait(ctx, clock, time.Hour); err == nil {
		t.Error("a stopped wait began again")
	}
}
