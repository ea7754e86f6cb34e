package bus

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"ordeal/agent/wire"
)

// Control tells every agent of a run to go, halt, release or pause.
func (b *Bus) Control(run string, c wire.Control) error {
	c.V = wire.Version
	if err := b.publish(wire.ControlSubject(run), c); err != nil {
		return err
	}
	return b.nc.Flush()
}

// OnControl calls handle for the control messages of every run.
func (b *Bus) OnControl(handle func(run string, c wire.Control)) (stop func(), err error) {
	return subscribe(b, wire.ControlSubject("*"), func(m *nats.Msg, c wire.Control) {
		if checkVersion(c.V) == nil {
			handle(wire.LastToken(m.Subject), c)
		}
	})
}

// Ask sends a request to one agent and waits for its answer; ErrGone when the
// agent is not connected.
func (b *Bus) Ask(ctx context.Context, agent string, r wire.Request) (wire.Ready, error) {
	r.V = wire.Version
	ready, err := request[wire.Ready](ctx, b, wire.AgentSubject(agent), r)
	if err == nil {
		err = checkVersion(ready.V)
	}
	if err != nil {
		return ready, fmt.Errorf("%s agent %s: %w", r.Kind, agent, err)
	}
	return ready, nil
}

// OnRequest calls handle for each request to this agent, each on a goroutine of
// its own: an agent that is getting ready can still say that it is busy, and
// what its clock says. stop returns once all are answered.
func (b *Bus) OnRequest(id string, handle func(wire.Request) wire.Ready) (stop func(), err error) {
	var answers sync.WaitGroup
	unsubscribe, err := subscribe(b, wire.AgentSubject(id), func(m *nats.Msg, r wire.Request) {
		if err := checkVersion(r.V); err != nil {
			respond(m, wire.Ready{V: wire.Version, Agent: id, Failure: &wire.Failure{Class: "harness", Message: err.Error()}})
			return
		}
		if r.Kind == wire.Ping { // answered in place: its delay is a measurement
			respond(m, handle(r))
			return
		}
		answers.Go(func() { respond(m, handle(r)) })
	})
	if err != nil {
		return nil, err
	}
	return func() { unsubscribe(); answers.Wait() }, nil
}

// PublishProgress tells whoever watches; it may be lost.
func (b *Bus) PublishProgress(run string, p wire.Progress) error {
	return b.publish(wire.ProgressSubject(run, p.Agent), p)
}

// OnProgress calls handle for each sample of the run's units.
func (b *Bus) OnProgress(run string, handle func(wire.Progress)) (stop func(), err error) {
	return subscribe(b, wire.ProgressSubject(run, "*"), func(m *nats.Msg, p wire.Progress) {
		p.Agent = wire.LastToken(m.Subject)
		handle(p)
	})
}

// PublishEvent tells the controller what became of a unit; it may be lost.
func (b *Bus) PublishEvent(run string, e wire.Event) error {
	e.V = wire.Version
	return b.publish(wire.EventSubject(run, e.Agent), e)
}

// OnEvent calls handle for each event of the run's units. Who speaks is taken
// from the subject, on which an agent can only publish as itself.
func (b *Bus) OnEvent(run string, handle func(wire.Event)) (stop func(), err error) {
	return subscribe(b, wire.EventSubject(run, "*"), func(m *nats.Msg, e wire.Event) {
		e.Agent = wire.LastToken(m.Subject)
		handle(e)
	})
}

// AskLease asks the controller of a run for leave to work; ErrGone when it has
// none at the moment.
func (b *Bus) AskLease(ctx context.Context, run string, a wire.Ask) (wire.Grant, error) {
	a.V = wire.Version
	grant, err := request[wire.Grant](ctx, b, wire.LeaseSubject(run, a.Agent), a)
	if err == nil {
		err = checkVersion(grant.V)
	}
	if err != nil {
		return grant, fmt.Errorf("ask for a lease of run %s: %w", run, err)
	}
	return grant, nil
}

// OnAsk answers the requests for a lease of a run, on one goroutine. handle
// returns false to leave one unanswered: whoever is not sure to lead the run
// must not speak for it.
func (b *Bus) OnAsk(run string, handle func(wire.Ask) (wire.Grant, bool)) (stop func(), err error) {
	return subscribe(b, wire.LeaseSubject(run, "*"), func(m *nats.Msg, a wire.Ask) {
		a.Agent = wire.LastToken(m.Subject)
		if grant, ok := handle(a); ok && checkVersion(a.V) == nil {
			grant.V = wire.Version
			respond(m, grant)
		}
	})
}

// SendOrder asks the controller of a run for something; ErrGone when it has none.
func (b *Bus) SendOrder(ctx context.Context, run string, o wire.Order) (wire.Order, error) {
	o.V = wire.Version
	return request[wire.Order](ctx, b, wire.RunSubject(run), o)
}

// OnOrder answers orders to the controller of a run, on one goroutine; false
// leaves one unanswered.
func (b *Bus) OnOrder(run string, handle func(wire.Order) (wire.Order, bool)) (stop func(), err error) {
	return subscribe(b, wire.RunSubject(run), func(m *nats.Msg, o wire.Order) {
		if answer, ok := handle(o); ok {
			answer.V = wire.Version
			respond(m, answer)
		}
	})
}
