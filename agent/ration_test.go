package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ordeal/agent/wire"
)

// budget grants calls out of a purse, slice by slice.
type budget struct {
	left, slice int64
	returned    int64
}

func (b *budget) answer(_ int, a wire.Ask) (wire.Grant, error) {
	b.left += a.Returned
	b.returned += a.Returned
	g := wire.Grant{Generation: 1, TTL: 9 * time.Second, Metered: true, Calls: min(a.Calls, b.slice, b.left)}
	b.left -= g.Calls
	if a.Calls > 0 && b.left == 0 {
		g.Spent = "the budget of calls"
	}
	return g, nil
}

// Callers together make exactly the calls that were granted, then all of them
// learn that there are no more.
func TestBudgetOfCallsIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{left: 1000, slice: 64}
		o := &office{answer: b.answer, delay: time.Millisecond}
		w := begin(t, openRun(t, o))
		var made atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for {
					if _, err := w.Take(t.Context()); err != nil {
						if spent := new(spentError); !errors.As(err, &spent) {
							t.Error(err)
						}
						return
					}
					made.Add(1)
					time.Sleep(time.Millisecond)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if made.Load() != 1000 || b.left != 0 {
			t.Errorf("%d calls made, %d left; want 1000 and none", made.Load(), b.left)
		}
		if w.released() != "the budget of calls" || w.Check() == nil {
			t.Errorf("released by %q, Check %v", w.released(), w.Check())
		}
		w.end()
	})
}

// The next slice is there before the last call of the one before is made.
func TestSlicesAreAskedForAheadOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{left: 1 << 40, slice: 1 << 40}
		o := &office{answer: b.answer, delay: 5 * time.Millisecond}
		w := begin(t, openRun(t, o))
		defer w.end()
		call := func() time.Duration {
			waited, err := w.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			return waited
		}
		for range 1000 {
			call() // finds its pace
		}
		synctest.Wait()
		asks := len(o.asks)
		var waited time.Duration
		for range 10_000 {
			waited += call()
		}
		synctest.Wait()
		if asks = len(o.asks) - asks; waited > 0 || asks > 50 {
			t.Errorf("waited %v for calls over 10 s, %d asks; want no wait and few asks", waited, asks)
		}
	})
}

func TestCallsGoBackWhenNobodyWantsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{left: 1000, slice: 100}
		r := openRun(t, &office{answer: func(n int, a wire.Ask) (wire.Grant, error) {
			a.Calls *= 100 // generous
			return b.answer(n, a)
		}})
		w := begin(t, r)
		if _, err := w.Take(t.Context()); err == nil {
			_, err = w.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if b.left == 1000 || r.ration.kept() == 0 {
			t.Fatalf("%d left, %d kept: nothing to give back", b.left, r.ration.kept())
		}
		w.end()
		time.Sleep(time.Second)
		synctest.Wait()
		if b.left != 998 || r.ration.kept() != 0 {
			t.Errorf("%d left there, %d kept here; want all but the two that were made", b.left, r.ration.kept())
		}
	})
}

// A refusal to grant is heeded for as long as it says.
func TestWaitForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{answer: func(n int, _ wire.Ask) (wire.Grant, error) {
			g := wire.Grant{Generation: 1, TTL: time.Hour, Metered: true}
			if n < 3 {
				g.Wait = time.Second
			} else {
				g.Calls = 1
			}
			return g, nil
		}}
		w := begin(t, openRun(t, o))
		defer w.end()
		waited, err := w.Take(t.Context())
		if err != nil || waited != 2*time.Second {
			t.Errorf("waited %v, %v; want 2s for the fourth answer", waited, err)
		}
	})
}

func TestHaltedCallersLeaveTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := openRun(t, &office{answer: func(_ int, _ wire.Ask) (wire.Grant, error) {
			return wire.Grant{Generation: 1, TTL: time.Hour, Metered: true, Wait: time.Minute}, nil
		}})
		w := begin(t, r)
		defer w.end()
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := w.Take(ctx); !errors.Is(err, stop) {
					t.Errorf("Take = %v, want %v", err, stop)
				}
			})
		}
		synctest.Wait()
		cancel(stop)
		wg.Wait()
		if n := len(r.ration.queue); n != 0 {
			t.Errorf("%d callers wait, want none", n)
		}
	})
}

// A pause voids what is in hand and on its way, and makes the run metered; a
// grant that was asked for before it does not undo that.
func TestPauseOvertakesGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{delay: time.Second, answer: func(n int, a wire.Ask) (wire.Grant, error) {
			g := wire.Grant{Generation: 1, TTL: 30 * time.Second}
			if n >= 2 {
				g.Metered, g.Calls = true, a.Calls
			}
			return g, nil
		}}
		r := openRun(t, o)
		w := begin(t, r)
		defer w.end()
		if waited, err := w.Take(t.Context()); err != nil || waited != 0 || w.Dry() {
			t.Fatalf("an unmetered call waited %v, %v", waited, err)
		}
		time.Sleep(10*time.Second - 500*time.Millisecond) // the second ask is on its way
		r.ration.halt(2 * time.Second)
		r.lease.poke()
		if number, end := w.Pause(); number != 1 || time.Until(end) != 2*time.Second || !w.Dry() {
			t.Errorf("pause %d until %v, dry %v; want the first, of 2s, and no call in hand", number, time.Until(end), w.Dry())
		}
		waited, err := w.Take(t.Context())
		if err != nil || waited != 1500*time.Millisecond {
			t.Errorf("waited %v, %v; want the answer to the third ask, 1.5s later", waited, err)
		}
	})
}

func TestUnmeteredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{answer: func(n int, _ wire.Ask) (wire.Grant, error) {
			return wire.Grant{Generation: 1, TTL: 3 * time.Second, Metered: n < 2, Wait: time.Hour}, nil
		}}
		w := begin(t, openRun(t, o))
		defer w.end()
		waited, err := w.Take(t.Context())
		if err != nil || waited != time.Second {
			t.Errorf("waited %v, %v; want until the lease was renewed without a meter", waited, err)
		}
	})
}

func BenchmarkTake(b *testing.B) {
	term := &term{}
	term.end.Store(after(time.Now(), time.Hour))
	r := &ration{poke: func() {}}
	for _, v := range []struct {
		name    string
		timed   bool
		metered bool
	}{{"virtual", false, false}, {"real", true, false}, {"metered", true, true}} {
		b.Run(v.name, func(b *testing.B) {
			w := &work{ration: r, term: term, timed: v.timed}
			r.metered.Store(v.metered)
			r.left = int64(b.N) + 1
			for b.Loop() {
				if _, err := w.Take(b.Context()); err != nil {
					b.Fatal(err)
				}
				r.left++
			}
		})
	}
}
