package lead

import (
	"time"

	"ordeal/agent/wire"
)

// listen subscribes to requests and orders.
func (l *Leader) listen() (hangUp func(), err error) {
	stopAsk, err := l.opt.Bus.OnAsk(l.run, l.grant)
	if err != nil {
		return nil, err
	}
	stopOrder, err := l.opt.Bus.OnOrder(l.run, l.obey)
	if err != nil {
		stopAsk()
		return nil, err
	}
	return func() { stopAsk(); stopOrder() }, nil
}

// grant answers an agent; false leaves it without an answer.
func (l *Leader) grant(a wire.Ask) (wire.Grant, bool) {
	if !l.Sure() {
		l.wake()
		return wire.Grant{}, false
	}
	g := wire.Grant{Denied: l.refusal(), Generation: l.Generation()}
	if g.Denied == "" {
		if pause := l.meter.grant(&g, &a); pause > 0 {
			l.pause(pause)
		}
	}
	g.TTL = l.left() // last: what was done until here may have taken time
	return g, g.TTL > 0
}

// refusal is why agents get no leave any more; empty = they do.
func (l *Leader) refusal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.denied
}

func (l *Leader) deny(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.denied = why
}

// pause makes the fleet wait, and ask for its calls from then on. The agent that
// met the quota is still waiting for its answer, so others are told beside it.
func (l *Leader) pause(d time.Duration) {
	l.work.Go(func() { l.control(wire.Control{Kind: wire.Quota, Pause: d}) })
}

// control tells all agents of the run, as far as they can be reached: the others
// stop by their lease.
func (l *Leader) control(c wire.Control) {
	c.Generation = l.Generation()
	if err := l.opt.Bus.Control(l.run, c); err != nil {
		l.opt.Log("run " + l.run + ": tell the agents to " + c.Kind + ": " + err.Error())
	}
}

// AgentGone takes a lost agent out of the reckoning: what calls it was granted
// count as made, and its share of the budget goes to the others.
func (l *Leader) AgentGone(agent string) { l.meter.gone(agent) }

// obey answers an order to this controller.
func (l *Leader) obey(o wire.Order) (wire.Order, bool) {
	if !l.Sure() {
		l.wake()
		return wire.Order{}, false
	}
	answer := wire.Order{Kind: o.Kind, Holder: l.opt.Holder}
	switch o.Kind {
	case wire.OrderWho:
	case wire.OrderHalt:
		l.halt(&Halted{Reason: o.Reason})
	default:
		answer.Error = "this controller does not know the order " + o.Kind
	}
	return answer, l.Sure()
}

// halt stops agents first and the run then: what they have measured until now is
// on its way by the time the run collects it. Leave is denied behind that, or an
// agent might drop what it has in place of reporting it.
func (l *Leader) halt(cause *Halted) {
	if l.ctx.Err() == nil {
		l.control(wire.Control{Kind: wire.Halt, Reason: cause.Error()})
	}
	l.cancel(cause)
	l.deny(cause.Error())
}
