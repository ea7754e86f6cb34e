package probe

import (
	"bytes"
	"context"
	"sync"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// fake is a target in real time (the bubble's, in tests) that answers by a
// function.
type fake struct {
	answer  func(ctx context.Context, c target.Call) metrics.Exchange
	session func(user int) error
	alive   func() (alive, restarted bool, exit string)
	survey  *wire.Survey

	mu     sync.Mutex
	calls  []target.Call
	users  map[int]int // calls by user
	opened int
}

func (f *fake) Survey(context.Context) (*wire.Survey, error) { return f.survey, nil }
func (f *fake) Virtual() bool                                { return false }
func (f *fake) Close(context.Context) error                  { return nil }

func (f *fake) Alive(context.Context) (alive, restarted bool, exit string) {
	if f.alive == nil {
		return true, false, ""
	}
	return f.alive()
}

func (f *fake) Session(_ context.Context, user int) (target.Session, error) {
	if f.session != nil {
		if err := f.session(user); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened++
	return fakeSession{f, user}, nil
}

type fakeSession struct {
	fake *fake
	user int
}

func (s fakeSession) Call(ctx context.Context, c target.Call) metrics.Exchange {
	s.fake.mu.Lock()
	c.Args = bytes.Clone(c.Args) // they are the caller's once the call is over
	s.fake.calls = append(s.fake.calls, c)
	if s.fake.users == nil {
		s.fake.users = map[int]int{}
	}
	s.fake.users[s.user]++
	s.fake.mu.Unlock()
	start := time.Now()
	x := s.fake.answer(ctx, c)
	x.Latency = time.Since(start)
	if ctx.Err() != nil {
		x.Outcome = metrics.Cancelled
	}
	return x
}

func (f *fake) env() Env { return Env{Target: f, timers: true} }

// after answers ok when d has passed.
func after(ctx context.Context, d time.Duration) metrics.Exchange {
	select {
	case <-time.After(d):
		return metrics.Exchange{Delivered: true, Executed: metrics.Yes}
	case <-ctx.Done():
		return metrics.Exchange{Outcome: metrics.Cancelled}
	}
}
