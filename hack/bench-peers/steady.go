package main

import (
	"time"

	"bench-peers/tape"
)

// steady is the middle of a run: no start of a runtime, no hand shake, no summary.
type steady struct {
	Calls int64   `json:"calls"` // arrived at the server
	S     float64 `json:"s"`
	CPUS  float64 `json:"cpu_s"` // of the client
}

// rate is in calls per second, 0 when the run was too short to have a middle.
func (s steady) rate() float64 {
	if s.S == 0 {
		return 0
	}
	return float64(s.Calls) / s.S
}

// The middle of a run, as shares of its length after the first call. A generator may
// make calls of its own before the load begins, so it does not start early.
const (
	steadyFrom = 0.35
	steadyTo   = 0.95
)

// sampler looks at a client and the tape every 20 ms.
type sampler struct {
	pid    int
	calls  *tape.Tape
	length time.Duration
	ended  chan struct{}

	first      time.Time
	begin, end mark
	peak       int64
}

type mark struct {
	at    time.Time
	calls int64
	cpu   time.Duration
}

func (s *sampler) loop() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-tick.C:
			s.look()
		}
	}
}

func (s *sampler) look() {
	s.peak = max(s.peak, peakMemory(s.pid))
	now := mark{at: time.Now(), calls: s.calls.Calls(), cpu: processClock(s.pid)}
	if now.calls > 0 && s.first.IsZero() {
		s.first = now.at
	}
	if s.length == 0 || s.first.IsZero() {
		return
	}
	share := float64(now.at.Sub(s.first)) / float64(s.length)
	if share >= steadyFrom && s.begin.at.IsZero() {
		s.begin = now
	}
	if share <= steadyTo {
		s.end = now
	}
}

func (s *sampler) steady() steady {
	if s.begin.at.IsZero() || !s.end.at.After(s.begin.at) {
		return steady{}
	}
	return steady{Calls: s.end.calls - s.begin.calls, S: s.end.at.Sub(s.begin.at).Seconds(), CPUS: (s.end.cpu - s.begin.cpu).Seconds()}
}
