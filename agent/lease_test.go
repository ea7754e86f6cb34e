package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
)

// office is the controller's side of one lease, without a network.
type office struct {
	mu     sync.Mutex
	answer func(n int, a wire.Ask) (wire.Grant, error) // n counts from 0
	delay  time.Duration
	asks   []wire.Ask
	at     []time.Duration // since the office opened
	opened time.Time
	inside int
}

func (o *office) ask(ctx context.Context, _ string, a wire.Ask) (wire.Grant, error) {
	o.mu.Lock()
	n := len(o.asks)
	o.asks, o.at = append(o.asks, a), append(o.at, time.Since(o.opened))
	o.inside++
	if o.inside > 1 {
		panic("two asks at once")
	}
	delay, answer := o.delay, o.answer
	o.mu.Unlock()
	defer func() { o.mu.Lock(); o.inside--; o.mu.Unlock() }()
	sleep(ctx, delay)
	if ctx.Err() != nil {
		return wire.Grant{}, ctx.Err()
	}
	return answer(n, a)
}

// grants for ttl, with generation 1.
func grants(ttl time.Duration) func(int, wire.Ask) (wire.Grant, error) {
	return func(int, wire.Ask) (wire.Grant, error) { return wire.Grant{Generation: 1, TTL: ttl}, nil }
}

// openRun is a run of an agent whose leases come from an office.
func openRun(t *testing.T, o *office) *run {
	t.Helper()
	o.opened = time.Now()
	rs := &runs{agent: "a1", ask: o.ask, watch: &gauges{}, byID: map[string]*run{}}
	r, err := rs.enter("r1", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rs.close)
	return r
}

func begin(t *testing.T, r *run) *work {
	t.Helper()
	w, err := r.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestLeaseIsRenewedEveryThirdWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{answer: grants(9 * time.Second)}
		r := openRun(t, o)
		w := begin(t, r)
		time.Sleep(10 * time.Second)
		w.end()
		time.Sleep(time.Minute) // nobody holds it, nobody asks
		synctest.Wait()
		want := []time.Duration{0, 3 * time.Second, 6 * time.Second, 9 * time.Second}
		if diff := cmp.Diff(want, o.at); diff != "" {
			t.Errorf("asked at (-want +got):\n%s", diff)
		}
	})
}

// The time a grant travels is not added to it.
func TestLeaseCountsFromTheSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{delay: time.Second, answer: func(n int, _ wire.Ask) (wire.Grant, error) {
			if n > 0 {
				return wire.Grant{}, errors.New("no more")
			}
			return wire.Grant{Generation: 1, TTL: 6 * time.Second}, nil
		}}
		w := begin(t, openRun(t, o))
		defer w.end()
		<-w.ctx.Done()
		if at := time.Since(o.opened); at != 6*time.Second || !errors.Is(context.Cause(w.ctx), ErrLeaseExpired) {
			t.Errorf("ended after %v by %v, want 6s by the lease", at, context.Cause(w.ctx))
		}
		if _, err := w.Take(t.Context()); !errors.Is(err, ErrLeaseExpired) || w.Check() == nil || w.released() != wire.ByLease {
			t.Errorf("Take = %v, Check = %v, released %q; want the lease over", err, w.Check(), w.released())
		}
	})
}

// What a lease cut stays cut; what begins once it is there again works.
func TestLeaseComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		o := &office{}
		o.answer = func(int, wire.Ask) (wire.Grant, error) {
			if silent.Load() {
				return wire.Grant{}, errors.New("silent")
			}
			return wire.Grant{Generation: 1, TTL: 3 * time.Second}, nil
		}
		r := openRun(t, o)
		old := begin(t, r)
		silent.Store(true)
		<-old.ctx.Done()
		if _, err := r.begin(t.Context()); !errors.Is(err, errNoAnswer) {
			t.Errorf("begin = %v, want that nobody answers", err)
		}
		silent.Store(false)
		fresh := begin(t, r)
		if _, err := fresh.Take(t.Context()); err != nil || fresh.ctx.Err() != nil {
			t.Errorf("Take = %v, ctx %v; want new work to go on", err, fresh.ctx.Err())
		}
		if _, err := old.Take(t.Context()); !errors.Is(err, ErrLeaseExpired) {
			t.Errorf("Take of the old work = %v, want it to stay over", err)
		}
		old.end()
		fresh.end()
	})
}

func TestOneLostAnswerCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{answer: func(n int, _ wire.Ask) (wire.Grant, error) {
			if n%2 == 1 {
				return wire.Grant{}, errors.New("lost")
			}
			return wire.Grant{Generation: 1, TTL: time.Second}, nil
		}}
		w := begin(t, openRun(t, o))
		defer w.end()
		time.Sleep(time.Minute)
		if w.ctx.Err() != nil {
			t.Errorf("ended by %v, want it to go on", context.Cause(w.ctx))
		}
	})
}

func TestLeaseAnswers(t *testing.T) {
	denied := &deniedError{"the run is over"}
	for _, r := range []struct {
		name  string
		grant wire.Grant
		want  error
	}{
		{"OK", wire.Grant{Generation: 7, TTL: time.Second}, nil},
		{"OlderGeneration", wire.Grant{Generation: 6, TTL: time.Second}, errReplaced},
		{"OlderGenerationDenies", wire.Grant{Generation: 6, TTL: time.Second, Denied: "no"}, errReplaced},
		{"NoTime", wire.Grant{Generation: 7}, errNoAnswer},
		{"Denied", wire.Grant{Generation: 7, TTL: time.Second, Denied: denied.why}, denied},
	} {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := openRun(t, &office{answer: func(int, wire.Ask) (wire.Grant, error) { return r.grant, nil }})
				state.lease.see(7)
				w, err := state.begin(t.Context())
				var d *deniedError
				if r.want == denied && (!errors.As(err, &d) || d.why != denied.why) || r.want != denied && !errors.Is(err, r.want) {
					t.Errorf("begin = %v, want %v", err, r.want)
				}
				if err == nil {
					w.end()
				}
			})
		})
	}
}

// Work in hand ends when its controller says that the run is over.
func TestDenialEndsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{answer: func(n int, _ wire.Ask) (wire.Grant, error) {
			g := wire.Grant{Generation: 1, TTL: 3 * time.Second}
			if n == 2 {
				g.Denied = "halted long ago"
			}
			return g, nil
		}}
		w := begin(t, openRun(t, o))
		defer w.end()
		<-w.ctx.Done()
		var d *deniedError
		if cause := context.Cause(w.ctx); !errors.As(cause, &d) || time.Since(o.opened) != 2*time.Second {
			t.Errorf("ended after %v by %v, want the denial of the third ask", time.Since(o.opened), cause)
		}
	})
}

// A later controller takes up what an earlier one has halted; the calls that the
// earlier one granted are void.
func TestGenerations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{answer: func(_ int, a wire.Ask) (wire.Grant, error) {
			return wire.Grant{Generation: 2, TTL: 3 * time.Second, Metered: true, Calls: a.Calls}, nil
		}}
		r := openRun(t, o)
		r.lease.halt(errors.New("halted"))
		if _, err := r.begin(t.Context()); err == nil {
			t.Fatal("a halted run begins work")
		}
		if !r.lease.see(2) {
			t.Fatal("generation 2 is refused")
		}
		w := begin(t, r)
		defer w.end()
		if r.lease.see(1) {
			t.Error("generation 1 is heard after 2")
		}
		if _, err := w.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.ration.mu.Lock()
		r.ration.left = 5
		r.ration.mu.Unlock()
		r.lease.see(3)
		if left := r.ration.kept(); left != 0 {
			t.Errorf("%d calls of an earlier controller left, want none", left)
		}
	})
}

// The agent's stop is not undone by a later controller.
func TestStopOutlastsGenerations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := openRun(t, &office{answer: grants(time.Second)})
		r.lease.end(ErrStopped)
		r.lease.see(5)
		if _, err := r.begin(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("begin = %v, want %v", err, ErrStopped)
		}
	})
}

func TestRateLimitsAreToldAtOnceAndTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{answer: grants(9 * time.Second)}
		w := begin(t, openRun(t, o))
		defer w.end()
		time.Sleep(time.Second)
		for i := range 100 {
			w.Seen(wire.QuotaSignal{RetryAfter: time.Duration(i) * time.Millisecond, Limit: 60, Window: time.Minute})
			time.Sleep(time.Millisecond / 2)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		var told []wire.Ask
		for _, a := range o.asks {
			if a.Quota != nil {
				told = append(told, a)
			}
		}
		if len(told) == 0 || len(told) > 3 || o.at[1] != time.Second {
			t.Fatalf("told %d times, first after %v; want at once, and the rest together", len(told), o.at[1])
		}
		if last := told[len(told)-1].Quota; last.RetryAfter != 99*time.Millisecond || last.Limit != 60 || last.Age > signalEvery {
			t.Errorf("last %+v, want the longest wait, the limit, and the age of the last call", last)
		}
	})
}

// A lease whose wall clock says that it is over is over, though the monotonic
// clock has stood still: the machine was suspended.
func TestSuspendedMachineHoldsNoLease(t *testing.T) {
	m := after(time.Now(), time.Hour)
	if m.passed() {
		t.Fatal("over before its time")
	}
	m.wall = time.Now().Add(-time.Second).UnixNano()
	if !m.passed() {
		t.Error("an hour of wall time has passed, and the lease holds")
	}
}

func TestReleasedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{answer: grants(time.Second)}
		rs := &runs{agent: "a1", ask: o.ask, watch: &gauges{}, byID: map[string]*run{}}
		defer rs.close()
		r, err := rs.enter("r1", 2)
		if err != nil {
			t.Fatal(err)
		}
		if rs.release("r1", 1) != nil || len(rs.byID) != 1 {
			t.Error("a controller that was replaced has released the run")
		}
		if rs.release("r1", 2) != r {
			t.Fatal("the run is not released")
		}
		r.close()
		if _, err := rs.enter("r1", 2); !errors.Is(err, errReleased) {
			t.Errorf("enter = %v, want the run to be over", err)
		}
		if _, err := rs.enter("r1", 3); err != nil {
			t.Errorf("enter of a later controller = %v", err)
		}
		for i := range 3 * keptReleased {
			rs.release(string(rune('A'+i)), 1)
		}
		if len(rs.released) != keptReleased {
			t.Errorf("remembers %d released runs, want %d", len(rs.released), keptReleased)
		}
	})
}

// What a controller that died has left open is closed after a while.
func TestIdleRunsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{answer: grants(time.Second)}
		rs := &runs{agent: "a1", ask: o.ask, watch: &gauges{}, byID: map[string]*run{}}
		defer rs.close()
		used, _ := rs.enter("used", 1)
		left, _ := rs.enter("left", 1)
		rs.leave(left)
		time.Sleep(idleClose + time.Second)
		if idle := rs.idle(time.Now()); len(idle) != 1 || idle[0] != left {
			t.Errorf("idle %v, want the one that nobody uses", idle)
		}
		left.close()
		rs.leave(used)
		if idle := rs.idle(time.Now()); len(idle) != 0 {
			t.Errorf("closed at once: %v", idle)
		}
	})
}
