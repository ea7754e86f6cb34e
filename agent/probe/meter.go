package probe

import (
	"runtime"
	rtmetrics "runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

const (
	tickEvery = 10 * time.Millisecond
	lookEvery = 500 * time.Millisecond
	// badLooks in a row are no accident: a mark is there within two seconds of its
	// onset, the rest of the look in which it began included.
	badLooks = 3
)

// meter watches the process that generates the load. A nil one sees nothing.
type meter struct {
	virtual bool
	paced   bool
	quit    chan struct{}
	wg      sync.WaitGroup
	began   reading
	begun   bool

	service  atomic.Int64 // target's median of late, µs; -1 asks for a fresh one
	limit    atomic.Int64 // ns that a slot may begin after its arrival was due
	behind   atomic.Int64 // ns that the pacer woke behind the last arrival
	calls    atomic.Int64 // made so far
	handouts atomic.Int64
	tardies  atomic.Int64
	files    atomic.Int64
	ports    atomic.Int64

	mu     sync.Mutex   // guards recent
	recent metrics.Dist // µs between due and woken, since the last look
	total  metrics.Dist // before it; owned by look

	last   reading
	bad    int // looks in a row
	mark   string
	short  float64
	marked time.Time // when mark was found
}

// reading is what the process had used by a moment.
type reading struct {
	at                              time.Time
	cpu, wait, gc, behind           time.Duration
	calls                           int64
	handouts, tardies, files, ports int64
}

func newMeter(env *Env, paced bool) *meter {
	m := &meter{virtual: env.Target.Virtual(), paced: paced, quit: make(chan struct{})}
	m.service.Store(-1)
	m.limit.Store(int64(lateFloor))
	return m
}

// start begins to measure. In a closed loop nothing is due at a known time, so the
// meter finds out by itself how late this process wakes up.
func (m *meter) start(env *Env) {
	m.began, m.begun = m.read(), true
	m.last = m.began
	if env.metered != nil {
		env.metered(m)
	}
	switch {
	case m.virtual:
	case m.paced:
		env.spawn(&m.wg, m.watch)
	default:
		env.spawn(&m.wg, m.tick)
	}
}

func (m *meter) read() reading {
	return reading{at: time.Now(), cpu: CPUTime(), wait: runQueueWait(), gc: gcPause(), behind: time.Duration(m.behind.Load()),
		calls: m.calls.Load(), handouts: m.handouts.Load(), tardies: m.tardies.Load(), files: m.files.Load(), ports: m.ports.Load()}
}

func (m *meter) watch() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-m.quit:
			return
		case <-look.C:
			m.look()
		}
	}
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
		m.woke(max(0, time.Since(due)))
		if time.Since(m.last.at) >= lookEvery {
			m.look()
		}
		timer.Reset(tickEvery)
	}
}

// woke notes a tick, or an arrival of the pacer, that was due so long ago.
func (m *meter) woke(late time.Duration) {
	late = max(late, 0)
	m.behind.Store(int64(late))
	m.mu.Lock()
	m.recent.Record(late.Microseconds())
	m.mu.Unlock()
}

// handed notes an arrival that a slot takes up so late.
func (m *meter) handed(late time.Duration) {
	m.handouts.Add(1)
	if int64(late) > m.limit.Load() {
		m.tardies.Add(1)
	}
}

// served tells the target's median service time when it was asked for.
func (m *meter) served(t *metrics.Tally) {
	if m != nil && m.service.Load() < 0 && t.Service.N() > 0 {
		m.service.Store(serviceOf(t))
	}
}

// made tells of calls that were made.
func (m *meter) made(calls int64) {
	if m != nil {
		m.calls.Add(calls)
	}
}

// look judges the stretch since the last look.
func (m *meter) look() {
	now := m.read()
	m.mu.Lock()
	recent := m.recent
	m.recent = metrics.Dist{}
	m.mu.Unlock()
	s := m.signals(&m.last, &now, &recent, max(m.service.Load(), 0))
	m.total.Merge(&recent)
	m.last = now
	m.service.Store(-1)
	m.limit.Store(s.limit() * int64(time.Microsecond))
	why := s.reason()
	if why == "" {
		m.bad = 0
		return
	}
	m.bad += max(1, int(s.span/lookEvery)) // one that came late is about as many
	if short := s.short(); m.bad >= badLooks || s.files+s.ports > 0 {
		m.short = max(m.short, short)
		if m.mark == "" {
			m.mark, m.marked = why, now.at
		}
	}
}

func (m *meter) signals(from, to *reading, lag *metrics.Dist, service int64) signals {
	return signals{span: to.at.Sub(from.at), paced: m.paced, cores: usableCores(), cpu: to.cpu - from.cpu, wait: to.wait - from.wait, calls: to.calls - from.calls,
		pause: to.gc - from.gc, late: lag.Quantile(990), ticks: lag.N(), handed: to.handouts - from.handouts, tardy: to.tardies - from.tardies,
		fellBack: to.behind - from.behind, service: service, memory: memoryMilli(), files: to.files - from.files, ports: to.ports - from.ports}
}

// stop ends the measurement and says whether the generator was its own limit.
func (m *meter) stop(t *metrics.Tally) wire.Generator {
	close(m.quit)
	m.wg.Wait()
	if !m.begun {
		return wire.Generator{}
	}
	m.total.Merge(&m.recent)
	now := m.read()
	now.behind = m.began.behind // what it fell back is judged while it lasts
	whole := m.signals(&m.began, &now, &m.total, serviceOf(t))
	return m.generator(&whole)
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
