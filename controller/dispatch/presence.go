package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// How presence is found out. An agent whose process is gone has no subscription:
// the server answers in its place, at once. Two such answers in a row count,
// and none for a while after a connection was lost, when whole fleets come back.
const (
	askEvery   = 100 * time.Millisecond
	askPerTick = 64 // asked at once; a thousand agents take a second and a half
	answerWait = time.Second
	goneTwice  = 2
	comeBack   = 2 * time.Second // after the controller's own connection was lost
)

// presence asks the agents that have work whether they are there.
type presence struct {
	d    *Dispatcher
	quit context.CancelFunc
	done sync.WaitGroup
	lost chan loss

	alone time.Time // since when no agent is left; owned by watch
	said  bool
	led   time.Time // when the controller was last sure to lead; owned by watch

	mu         sync.Mutex
	gang       map[string]time.Time // member → when it last answered
	gone       map[string]int       // agent → answers in a row that nobody was there
	sure       bool                 // to lead, when it was last looked at: else nobody can answer
	surely     time.Time            // since when
	reconnects uint64
	since      time.Time // of the last reconnect
}

// loss is an agent that had work and is not there any more.
type loss struct {
	agent string
	why   string
}

func newPresence(d *Dispatcher) *presence {
	ctx, cancel := context.WithCancel(context.Background())
	p := &presence{d: d, quit: cancel, led: time.Now(), sure: true, gone: map[string]int{}, lost: make(chan loss, 4096)}
	p.done.Go(func() { p.watch(ctx) })
	return p
}

func (p *presence) close() { p.quit(); p.done.Wait() }

// members of the gang under way; none ends the watch.
func (p *presence) members(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gang = map[string]time.Time{}
	for _, id := range ids {
		p.gang[id] = time.Now()
	}
}

func (p *presence) watch(ctx context.Context) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.ask(ctx, p.who())
		p.anybody()
	}
}

// How long a run goes on without agents, or without its lease, before it says so
// and before it ends.
const (
	desertSay  = 2 * time.Second
	desertWait = time.Minute
)

// anybody warns when no agent is left to work, and ends the run when none comes,
// or when its record cannot be renewed: agents do nothing for it meanwhile.
func (p *presence) anybody() {
	now := time.Now()
	if p.leads() {
		p.led = now
	} else if now.Sub(p.led) > desertWait {
		p.suspend(fmt.Sprintf("the record of the run could not be renewed for %v: see to the NATS server and its disk", desertWait))
	}
	fit, _ := p.d.opt.Roster.Members(p.d.opt.Pool, p.d.opt.Select)
	switch {
	case len(fit) > 0 || !p.d.opt.Bus.Connected():
		p.alone, p.said = time.Time{}, false
	case p.alone.IsZero():
		p.alone = now
	case !p.said && now.Sub(p.alone) > desertSay:
		p.said = true
		p.d.warn("no agent of pool %s is left: waiting for one", p.d.opt.Pool)
	case now.Sub(p.alone) > desertWait:
		p.suspend(fmt.Sprintf("no agent has served pool %q for %v: start agents", p.d.opt.Pool, desertWait))
	}
}

func (p *presence) suspend(why string) {
	select {
	case p.d.trouble <- &Suspended{Run: p.d.opt.Run, Reason: why}:
	default: // said already
	}
}

// who is to be asked: those with units in hand and the members of the gang.
func (p *presence) who() []string {
	ids := p.d.hands.agents()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.gang {
		ids = append(ids, id)
	}
	// Who is not asked this time begins anew.
	maps.DeleteFunc(p.gone, func(id string, _ int) bool { return !slices.Contains(ids, id) })
	return ids
}

func (p *presence) ask(ctx context.Context, ids []string) {
	for len(ids) > 0 {
		n := min(len(ids), askPerTick)
		var round sync.WaitGroup
		for _, id := range ids[:n] {
			round.Go(func() { p.one(ctx, id) })
		}
		round.Wait()
		ids = ids[n:]
	}
}

func (p *presence) one(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	_, err := p.d.opt.Bus.Ask(ctx, id, wire.Request{Kind: wire.Ping})
	switch {
	case err == nil:
		p.answered(id)
	case errors.Is(err, bus.ErrGone):
		if p.missing(id) {
			p.bury(id, "its connection to NATS is gone")
		}
	default:
		p.silent(id)
	}
}

func (p *presence) answered(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.gone, id)
	if _, member := p.gang[id]; member {
		p.gang[id] = time.Now()
	}
}

// missing counts an answer that nobody was there, and reports whether it decides.
func (p *presence) missing(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.d.opt.Bus.Reconnects(); n != p.reconnects {
		p.reconnects, p.since = n, time.Now()
	}
	if time.Since(p.since) < comeBack {
		return false
	}
	p.gone[id]++
	return p.gone[id] >= goneTwice
}

// silent counts a member as lost that has not answered for a lease: whatever it
// does, it may send no more load. While nobody answers, it is the controller's own
// connection that is lost: silence counts from when that is known to be whole, and
// a third of a lease is left for a renewal to have failed.
func (p *presence) silent(id string) {
	leads := p.leads()
	p.mu.Lock()
	since, member := p.gang[id]
	if p.surely.After(since) {
		since = p.surely
	}
	p.mu.Unlock()
	if ttl := p.d.opt.LeaseTTL; leads && member && time.Since(since) > ttl+ttl/3 {
		p.bury(id, "it has not answered for "+ttl.String())
	}
}

// leads reports whether the controller is sure to lead, and notes since when.
func (p *presence) leads() bool {
	sure := p.d.opt.Sure()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !sure || !p.sure {
		p.surely = time.Now()
	}
	p.sure = sure
	return sure
}

// bury hands on what a lost agent had in hand.
func (p *presence) bury(id, why string) {
	p.d.opt.Roster.Gone(id)
	acks := p.d.hands.takeFrom(id)
	for _, ack := range acks {
		if p.d.opt.Sure() { // else its successor's business
			_ = p.d.opt.Bus.HandOn(ack) // lost, it is handed out again after wire.AckWait
		}
		p.d.opt.Meter.UnitRedelivered()
	}
	if len(acks) > 0 {
		p.d.warn("agent %s is lost: %s; %d of its units go to others", id, why, len(acks))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.gone, id)
	_, member := p.gang[id]
	delete(p.gang, id)
	if member || len(acks) > 0 {
		p.lost <- loss{id, why}
		if p.d.opt.Gone != nil {
			p.d.opt.Gone(id)
		}
	}
}
