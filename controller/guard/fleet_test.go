package guard

import (
	"fmt"
	"testing"
	"time"
)

// A fleet on a virtual clock of 1 ms: agents with workers that call a target with
// a token bucket, 20 ms away, and a controller that holds the Quota. The workers
// of the whole fleet together would send the offered rate, whatever their number
// of agents.
const (
	tick     = time.Millisecond
	workers  = 32
	callWay  = 20 * tick // one way, agent to target
	limit    = 100.0     // calls/s the target admits
	settling = 10 * time.Second
	simTime  = 70 * time.Second
)

// world is what a fleet meets.
type world struct {
	offered float64       // calls/s
	bucket  float64       // of the target
	hints   bool          // refusals name Retry-After, limit and window
	askWay  time.Duration // one way, agent to controller
}

func (w world) String() string {
	return fmt.Sprintf("hints=%v/offered=%g/bucket=%g/way=%v", w.hints, w.offered, w.bucket, w.askWay)
}

type fleet struct {
	world
	now    time.Duration
	later  map[time.Duration][]func()
	agents []*simAgent

	room     float64         // in the target's bucket
	admitted int64           // after settling
	refused  int64           // all told
	sent     []time.Duration // of the last second
}

type simAgent struct {
	id      string
	quota   *Quota
	idle    int // workers without a call
	metered bool
	asking  bool
	tokens  int64
	pause   time.Duration // end of the last pause it knows of; older tokens are void
}

func (f *fleet) after(d time.Duration, do func()) { f.later[f.now+d] = append(f.later[f.now+d], do) }

// newFleet shares one Quota, or gives each agent its own.
func newFleet(agents int, w world, own bool) *fleet {
	f := &fleet{world: w, later: map[time.Duration][]func(){}, room: w.bucket}
	quota := NewQuota(0)
	for i := range agents {
		if own {
			quota = NewQuota(0)
		}
		f.agents = append(f.agents, &simAgent{id: fmt.Sprint("a", i), quota: quota})
	}
	for i := range workers { // they start one after the other
		a := f.agents[i%agents]
		f.after(f.cycle()*time.Duration(i)/workers/tick*tick, func() { a.idle++ })
	}
	return f
}

// cycle is the time a worker takes over one call.
func (f *fleet) cycle() time.Duration {
	return time.Duration(workers / f.offered * float64(time.Second)).Truncate(tick)
}

func (f *fleet) run() *fleet {
	for ; f.now < simTime; f.now += tick {
		f.room = min(f.bucket, f.room+limit*tick.Seconds())
		for i := 0; i < len(f.later[f.now]); i++ { // what is due may add to it
			f.later[f.now][i]()
		}
		delete(f.later, f.now)
		for _, a := range f.agents {
			f.work(a)
		}
	}
	return f
}

func (f *fleet) work(a *simAgent) {
	for a.idle > 0 && (!a.metered || a.tokens > 0) {
		a.idle--
		a.tokens--
		f.call(a)
	}
	if a.metered && a.tokens == 0 && !a.asking {
		f.ask(a)
	}
}

func (f *fleet) call(a *simAgent) {
	sent := f.now
	f.sent = append(f.sent, sent)
	f.after(f.cycle(), func() { a.idle++ })
	f.after(callWay, func() {
		if f.room < 1 {
			f.refused++
			f.after(callWay+f.askWay, func() { f.signal(a.quota, sent) })
			return
		}
		f.room--
		if f.now >= settling {
			f.admitted++
		}
	})
}

// signal reaches the controller, which tells every agent when there is a new pause.
func (f *fleet) signal(q *Quota, sent time.Duration) {
	_, before, _ := q.Limited()
	s := Signal{Age: f.now - sent, Rate: f.rate()}
	if f.hints {
		s.RetryAfter, s.Limit, s.Window = time.Second, int64(limit), time.Second
	}
	q.Seen(f.now, s)
	_, until, _ := q.Limited()
	if until == before {
		return
	}
	for _, a := range f.agents {
		if a.quota == q {
			f.after(f.askWay, func() { a.metered, a.tokens, a.pause = true, 0, until })
		}
	}
}

// rate is what was sent in the last second.
func (f *fleet) rate() float64 {
	span := min(f.now, time.Second)
	for len(f.sent) > 0 && f.sent[0] < f.now-span {
		f.sent = f.sent[1:]
	}
	return float64(len(f.sent)) / span.Seconds()
}

func (f *fleet) ask(a *simAgent) {
	a.asking = true
	f.after(f.askWay, func() {
		n, wait := a.quota.Grant(f.now, a.id, int64(workers/len(f.agents)))
		_, pause, _ := a.quota.Limited()
		f.after(f.askWay, func() {
			if pause == a.pause {
				a.tokens += n
			}
			f.after(wait, func() { a.asking = false })
		})
	})
}

func (f *fleet) utilisation() float64 {
	return float64(f.admitted) / (limit * (simTime - settling).Seconds())
}

// worlds: a target's bucket must hold what a fleet sends in one question to the
// controller and back, else its refusals say nothing about the rate.
func worlds() (all []world) {
	for _, hints := range []bool{true, false} {
		for _, offered := range []float64{120, 400, 800} {
			for _, bucket := range []float64{10, 20, 100} {
				all = append(all, world{offered, bucket, hints, 5 * tick})
			}
			for _, bucket := range []float64{20, 100} {
				all = append(all, world{offered, bucket, hints, 50 * tick})
			}
		}
	}
	return all
}

// TestFleetSharesOneQuota: a fleet is no worse a guest than a single agent, and
// makes use of what the target allows.
func TestFleetSharesOneQuota(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.String(), func(t *testing.T) {
			var alone int64
			for _, agents := range []int{1, 4, 16} {
				f := newFleet(agents, w, false).run()
				t.Logf("%2d agents: %3d refused, utilisation %.3f", agents, f.refused, f.utilisation())
				if agents == 1 {
					alone = f.refused
				}
				if most := 1.5*float64(alone) + 16; float64(f.refused) > most {
					t.Errorf("%d agents: %d refused, want at most %.0f (one agent: %d)", agents, f.refused, most, alone)
				}
				if f.utilisation() < 0.85 {
					t.Errorf("%d agents: utilisation %.3f of the limit, want 0.85", agents, f.utilisation())
				}
			}
		})
	}
}

// TestFleetWithoutSharing shows that the bound above is owed to sharing.
func TestFleetWithoutSharing(t *testing.T) {
	w := world{offered: 800, bucket: 20, hints: true, askWay: 5 * tick}
	alone, own := newFleet(1, w, false).run().refused, newFleet(16, w, true).run().refused
	if bound := 1.5*float64(alone) + 16; float64(own) <= bound {
		t.Errorf("%d refused with a quota per agent is within %.0f: the simulation proves nothing", own, bound)
	}
}
