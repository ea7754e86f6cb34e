package probe

import (
	"fmt"
	"runtime"
	rtmetrics "runtime/metrics"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Limits above which the generator, and not the target, may be what a level
// measured.
const (
	busyMilli  = 850                   // of each core the process may use
	lateFloor  = 2 * time.Millisecond  // pacer, p99; open-loop latency counts lateness in
	driftFloor = 10 * time.Millisecond // closed loop, p99: timers alone are 1 ms late
	tickEvery  = 10 * time.Millisecond
	fewTicks   = 20 // below that a p99 of the ticks is only a maximum
)

// meter watches the process that generates the load.
type meter struct {
	virtual bool
	paced   bool
	lag     metrics.Dist // µs between due and woken; owned by the pacer or by tick
	start   time.Time
	cpu     time.Duration
	gc      time.Duration
	quit    chan struct{}
	ticking sync.WaitGroup
}

// startMeter begins to measure. In a closed loop nothing is due at a known
// time, so a goroutine of its own finds out how late this process wakes up.
func startMeter(env *Env, paced bool) *meter {
	m := &meter{virtual: env.Target.Virtual(), paced: paced, quit: make(chan struct{})}
	m.start, m.cpu, m.gc = time.Now(), CPUTime(), gcPause()
	if !m.virtual && !paced {
		env.spawn(&m.ticking, m.tick)
	}
	return m
}

func (m *meter) tick() {
	timer := time.NewTimer(tickEvery)
	defer timer.Stop()
	for {
		due := time.Now().Add(tickEvery)
		select {
		case <-m.quit:
			return
		case <-timer.C:
		}
		m.lag.Record(max(0, time.Since(due).Microseconds()))
		timer.Reset(tickEvery)
	}
}

// stop ends the measurement and says whether the generator was its own limit.
// Virtual targets take all the CPU there is and lose nothing by it.
func (m *meter) stop(t *metrics.Tally) wire.Generator {
	close(m.quit)
	m.ticking.Wait()
	elapsed := max(time.Since(m.start), time.Microsecond)
	g := wire.Generator{GCPauseUS: (gcPause() - m.gc).Microseconds(), Lag: m.lag,
		CPUMilli: int64((CPUTime() - m.cpu) * 1000 / elapsed)}
	if !m.virtual {
		g.Reason = saturation(&g, m.paced, runtime.GOMAXPROCS(0), t.Service.Quantile(500))
		g.Saturated = g.Reason != ""
	}
	return g
}

// saturation is the reason why a level measured its generator; empty when none
// is seen. p50 is the target's median service time in µs.
func saturation(g *wire.Generator, paced bool, cores int, p50 int64) string {
	floor := driftFloor.Microseconds()
	if paced {
		floor = lateFloor.Microseconds()
	}
	late, limit := g.Lag.Quantile(990), max(floor, p50/5)
	switch {
	case g.Lag.N() >= fewTicks && late > limit:
		return fmt.Sprintf("woke up %d µs late at p99, more than %d µs; give the generator more CPU or less load", late, limit)
	case g.Lag.N() >= fewTicks && g.CPUMilli > busyMilli*int64(cores):
		return fmt.Sprintf("used %d %% of %d cores, more than %d %%; add agents or lower the load", g.CPUMilli/10/int64(cores), cores, busyMilli/10)
	}
	return ""
}

// gcPause is the time this process has stood still for garbage collection, until
// the end of the last collection.
func gcPause() time.Duration {
	s := [1]rtmetrics.Sample{{Name: "/cpu/classes/gc/pause:cpu-seconds"}}
	rtmetrics.Read(s[:])
	if s[0].Value.Kind() != rtmetrics.KindFloat64 {
		return 0
	}
	return time.Duration(s[0].Value.Float64() * float64(time.Second) / float64(runtime.GOMAXPROCS(0)))
}
