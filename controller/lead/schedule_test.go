package lead

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// TestNeverTwoLeaders lets controllers be stopped, cut in one direction or both,
// woken, killed and replaced, and the server be restarted, at random moments. At
// none of them are two sure to lead that can be heard, no agent hears a lower
// generation after a higher one, and no leave of a predecessor outlasts what its
// successor is told.
func TestNeverTwoLeaders(t *testing.T) {
	var sum ledger
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := newPlay(t, w, seed)
				p.run()
				sum.add(&p.ledger)
			})
		})
	}
	t.Logf("%+v", &sum)
	if sum.taken < 50 || sum.afterSilence < 20 || sum.refused < 10 || sum.fenced < 10 || sum.grants < 2000 {
		t.Errorf("too little happened for a proof: %+v", &sum)
	}
}

// ledger counts what happened.
type ledger struct{ taken, afterSilence, refused, fenced, grants int }

func (l *ledger) add(o *ledger) {
	l.taken += o.taken
	l.afterSilence += o.afterSilence
	l.refused += o.refused
	l.fenced += o.fenced
	l.grants += o.grants
}

// play is one random schedule.
type play struct {
	ledger
	t   *testing.T
	w   *world
	rnd *rand.Rand
	ttl time.Duration

	mu      sync.Mutex
	cast    []*controller
	leaves  map[uint64]time.Time // generation → end of the last leave it gave
	highest uint64               // generation heard
}

func newPlay(t *testing.T, w *world, seed uint64) *play {
	p := &play{t: t, w: w, rnd: rand.New(rand.NewPCG(seed, 0)), leaves: map[uint64]time.Time{}}
	p.ttl = []time.Duration{MinTTL, 3 * time.Second, wire.LeaseTTL}[p.rnd.IntN(3)]
	p.cast = []*controller{w.create(func(o *Options) { o.TTL = p.ttl })}
	return p
}

func (p *play) run() {
	ctx, cancel := context.WithCancel(p.t.Context())
	var side sync.WaitGroup
	side.Go(func() { p.agent(ctx) })
	side.Go(func() { p.referee(ctx) })
	var takes sync.WaitGroup
	for range 25 {
		time.Sleep(time.Duration(p.rnd.Int64N(int64(p.ttl))))
		synctest.Wait() // cuts nothing in the middle of a handshake
		p.act(&takes)
	}
	for _, c := range p.all() {
		c.link.thaw()
	}
	takes.Wait()
	time.Sleep(2*p.ttl + 5*time.Second)
	cancel()
	side.Wait()
	p.end()
}

// act does one thing to somebody.
func (p *play) act(takes *sync.WaitGroup) {
	all := p.all()
	c := all[len(all)-1-p.rnd.IntN(min(2, len(all)))] // mostly whoever leads
	switch n := p.rnd.IntN(20); {
	case n < 4:
		c.link.freeze()
	case n < 5:
		c.link.up.shut()
	case n < 6:
		c.link.down.shut()
	case n < 10:
		c.link.thaw()
	case n < 12:
		c.kill()
	case n < 13:
		p.w.stop()
		p.w.start()
	default:
		takes.Go(p.take)
	}
}

func (p *play) take() {
	c, err := p.w.take(p.t.Context(), "heir")
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.refused++
		var led *Led
		if !errors.As(err, &led) {
			p.t.Logf("not taken: %v", err) // the server was restarted in between
		}
		return
	}
	p.cast = append(p.cast, c)
	p.taken++
	bound := c.Inherited()
	if bound.IsZero() {
		p.afterSilence++
		bound = time.Now()
	}
	for g, end := range p.leaves {
		if g < c.Generation() && end.After(bound) {
			p.t.Errorf("a leave of generation %d lasts %v longer than generation %d knows", g, end.Sub(bound), c.Generation())
		}
	}
}

// agent asks for leave all the time.
func (p *play) agent(ctx context.Context) {
	b, _ := p.w.connect("agent")
	for ctx.Err() == nil {
		sent := time.Now()
		limited, cancel := context.WithTimeout(ctx, p.ttl/2)
		g, err := b.AskLease(limited, "r1", wire.Ask{Agent: "a1"})
		cancel()
		p.hear(sent, g, err)
		time.Sleep(p.ttl / 20)
	}
}

func (p *play) hear(sent time.Time, g wire.Grant, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		return
	}
	p.grants++
	if g.Generation < p.highest {
		p.t.Errorf("granted by generation %d after %d", g.Generation, p.highest)
	}
	p.highest = max(p.highest, g.Generation)
	if end := sent.Add(g.TTL); end.After(p.leaves[g.Generation]) {
		p.leaves[g.Generation] = end
	}
}

// referee looks whether two are sure.
func (p *play) referee(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
		var first *controller
		for _, c := range p.all() {
			switch {
			case !c.Sure() || !c.link.whole():
			case first == nil:
				first = c
			case first.Sure() && first.link.whole(): // still, while the other one is
				p.t.Errorf("generations %d and %d are both sure", first.Generation(), c.Generation())
			}
		}
	}
}

// end checks who is left.
func (p *play) end() {
	r := p.w.run()
	for _, c := range p.all() {
		if c.Err() != nil {
			p.fenced++
			if !errors.Is(c.Err(), bus.ErrFenced) {
				p.t.Errorf("lost for %v", c.Err())
			}
		}
		if c.Sure() && c.Generation() != r.Generation {
			p.t.Errorf("generation %d is sure, the record has %d", c.Generation(), r.Generation)
		}
		if c.bus.Connected() && c.Generation() < r.Generation && c.Err() == nil {
			p.t.Errorf("generation %d does not know of %d", c.Generation(), r.Generation)
		}
	}
}

func (p *play) all() []*controller {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*controller(nil), p.cast...)
}
