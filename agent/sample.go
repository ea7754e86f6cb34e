package agent

import (
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// sampleEvery is how often a unit at work says how far it is.
const sampleEvery = 200 * time.Millisecond

// sampler tells whoever watches how far a unit is and what was observed of it, in
// pieces that add up to its tally. The load hands over what it has counted every
// few hundred calls and never waits for the network: what cannot be sent is part
// of the next piece.
type sampler struct {
	agent *Agent
	run   string
	quit  chan struct{}
	gone  chan struct{}

	mu    sync.Mutex
	now   wire.Progress
	dirty bool // now says more than was sent
	gauge func() (open, dropped int64)
	told  int64 // of the dropped arrivals, those in pieces
	piece piece
	spare piece // empty; its memory is used again
}

// piece is what was observed since the last one was sent.
type piece struct {
	watched   bool // failures count, too: nobody but Prometheus asks for their duration
	since     time.Time
	tally     metrics.Tally // outcomes and durations only
	tokensIn  int64
	tokensOut int64
	dropped   int64
}

// sample begins to tell about a unit. end must follow.
func (a *Agent) sample(u *wire.Unit) *sampler {
	s := &sampler{agent: a, run: u.Run, quit: make(chan struct{}), gone: make(chan struct{}),
		now: wire.Progress{Stage: u.Stage, Unit: u.ID, Agent: a.opt.ID}}
	s.piece.since = time.Now()
	s.piece.watched, s.spare.watched = a.opt.Metrics != nil, a.opt.Metrics != nil
	go func() {
		defer close(s.gone)
		s.send()
	}()
	return s
}

// end sends what is left.
func (s *sampler) end() { close(s.quit); <-s.gone }

// add is the load's side.
func (s *sampler) add(done, errs int64, seen *metrics.Tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Done, s.now.Errors, s.dirty = done, errs, true
	if seen != nil {
		s.piece.add(seen)
	}
}

// watch takes the gauge of the unit.
func (s *sampler) watch(gauge func() (open, dropped int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gauge = gauge
}

// read looks at the gauge: arrivals that were dropped since it was last read are part
// of the piece at hand. mu is held.
func (s *sampler) read() (open int64) {
	if s.gauge == nil {
		return 0
	}
	open, dropped := s.gauge()
	if more := dropped - s.told; more > 0 {
		s.piece.dropped += more
		s.told, s.dirty = dropped, true
	}
	return open
}

func (p *piece) add(t *metrics.Tally) {
	if p.tally.Outcomes == nil {
		p.tally.Outcomes = metrics.Counts{}
	}
	for outcome, n := range t.Outcomes {
		p.tally.Outcomes[outcome] += n
	}
	p.tally.Latency.Merge(&t.Latency)
	if p.watched {
		p.tally.Failed.Merge(&t.Failed)
		p.tally.TimedOut.Merge(&t.TimedOut)
	}
	p.tokensIn += t.TokensIn.Sum()
	p.tokensOut += t.TokensOut.Sum()
}

// merge adds a piece that could not be sent back to the one after it.
func (p *piece) merge(older *piece) {
	p.add(&older.tally)
	p.since = older.since
	p.dropped += older.dropped
	p.tokensIn += older.tokensIn
	p.tokensOut += older.tokensOut
}

func (p *piece) reset(now time.Time) {
	p.tally.Reset()
	p.since, p.tokensIn, p.tokensOut, p.dropped = now, 0, 0, 0
}

func (s *sampler) send() {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.once(false)
		case <-s.quit:
			s.once(true)
			return
		}
	}
}

// once sends a piece if there is one. The load waits for the exchange of two
// pieces, not for the coding or the sending of one.
func (s *sampler) once(last bool) {
	s.mu.Lock()
	open := s.read()
	if !s.dirty {
		s.mu.Unlock()
		return
	}
	now := time.Now()
	p := s.piece
	s.piece, s.dirty = s.spare, false
	s.piece.since = now
	progress := s.now
	s.mu.Unlock()
	if len(p.tally.Outcomes) > 0 || p.dropped > 0 {
		progress.Sample = &wire.Sample{Span: now.Sub(p.since), Outcomes: p.tally.Outcomes, Latency: p.tally.Latency, TokensIn: p.tokensIn, TokensOut: p.tokensOut,
			Dropped: p.dropped, InFlight: open}
	}
	err := s.agent.bus.PublishProgress(s.run, progress)
	if err == nil || last {
		s.agent.opt.Metrics.Operations(&p.tally)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.piece.merge(&p)
		s.dirty = true
	}
	p.reset(now)
	s.spare = p
}
