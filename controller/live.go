package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/plan"
	"ordeal/metrics"
)

// liveEvery is how often onlookers of a load are told how it goes.
const liveEvery = time.Second

// Live is what the fleet observed of a load since the last one, by what its agents
// have said so far: a preview, the result is made of stored results alone.
type Live struct {
	Stage   string
	Elapsed time.Duration // since the stage was begun, sessions opened and warmed up included
	Total   time.Duration // the load's own length; 0: a number of requests ends it
	Span    time.Duration // that the numbers are about
	Asked   float64       // callers or arrivals per second
	Rows    []LiveRow     // the whole fleet first, then the values of the label of --by
}

// LiveRow is what a part of the fleet observed.
type LiveRow struct {
	Name     string // empty for the whole
	Outcomes metrics.Counts
	Latency  metrics.Dist // successes, µs
	Dropped  int64
	InFlight int64
}

// live gathers samples for an onlooker.
type live struct {
	tell   func(Live)
	by     string
	labels func(agent string) map[string]string

	mu    sync.Mutex
	stage *plan.Stage
	asked float64
	began time.Time
	last  time.Time
	whole LiveRow
	parts map[string]*LiveRow
	open  map[string]int64 // calls in flight by agent, as last told
}

func newLive(r *run) *live {
	if r.opt.Live == nil || r.opt.Spec.Load == nil {
		return nil
	}
	return &live{tell: r.opt.Live, by: r.opt.By, labels: r.rosterLabels(), parts: map[string]*LiveRow{}, open: map[string]int64{}}
}

// rosterLabels looks agents up for a goroutine of its own, which keeps what it
// found: labels never change while an agent lives.
func (r *run) rosterLabels() func(agent string) map[string]string {
	known := map[string]map[string]string{}
	return func(agent string) map[string]string {
		if have, ok := known[agent]; ok {
			return have
		}
		for _, m := range r.roster.All() {
			known[m.ID] = m.Labels
		}
		return known[agent]
	}
}

// begin starts a stage; other stages than loads are not shown.
func (l *live) begin(st *plan.Stage) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage = nil
	if st.Probe != "load" {
		return
	}
	load := st.Units[0].Load
	l.stage, l.began, l.last = st, time.Now(), time.Now()
	l.asked = float64(load.Workers)
	if load.MilliRate > 0 {
		l.asked = float64(load.MilliRate) / 1000
	}
	l.reset()
	clear(l.open)
}

func (l *live) reset() {
	l.whole = LiveRow{Outcomes: metrics.Counts{}}
	clear(l.parts)
}

// add takes a sample in.
func (l *live) add(p *wire.Progress) {
	if l == nil || p.Sample == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stage == nil || p.Stage != l.stage.Name {
		return
	}
	l.open[p.Agent] = p.Sample.InFlight
	l.whole.add(p.Sample)
	if l.by == "" {
		return
	}
	value := l.labels(p.Agent)[l.by]
	part := l.parts[value]
	if part == nil {
		part = &LiveRow{Name: value, Outcomes: metrics.Counts{}}
		l.parts[value] = part
	}
	part.add(p.Sample)
	part.InFlight = l.openOf(value)
}

func (l *live) openOf(value string) (n int64) {
	for agent, k := range l.open {
		if l.labels(agent)[l.by] == value {
			n += k
		}
	}
	return n
}

func (r *LiveRow) add(s *wire.Sample) {
	for o, n := range s.Outcomes {
		r.Outcomes[o] += n
	}
	r.Latency.Merge(&s.Latency)
	r.Dropped += s.Dropped
}

// sorted are the parts by name.
func (l *live) sorted() (parts []*LiveRow) {
	for _, name := range slices.Sorted(maps.Keys(l.parts)) {
		parts = append(parts, l.parts[name])
	}
	return parts
}

// show tells what was gathered since the last time.
func (l *live) show() bool {
	l.mu.Lock()
	if l.stage == nil {
		l.mu.Unlock()
		return true
	}
	now := time.Now()
	for _, n := range l.open {
		l.whole.InFlight += n
	}
	news := Live{Stage: l.stage.Name, Elapsed: now.Sub(l.began), Total: l.stage.Units[0].Load.Duration, Span: now.Sub(l.last), Asked: l.asked, Rows: []LiveRow{l.whole}}
	for _, part := range l.sorted() {
		news.Rows = append(news.Rows, *part)
	}
	l.last = now
	l.reset()
	l.mu.Unlock()
	l.tell(news)
	return true
}
