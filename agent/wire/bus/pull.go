package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
)

// Queue is an agent's end of a pool's work queue. It pulls by itself, over one
// subscription: jetstream's Fetch makes a new one for each unit, which costs more
// than the unit, and its iterator stalls now and then. One goroutine uses it.
type Queue struct {
	nc      *nats.Conn
	sub     *nats.Subscription
	subject string    // of requests for a unit
	waiting time.Time // a request is with the server until then
	link    uint64    // reconnects when it was sent
}

// ErrNoQueue is returned by Queue while nobody has opened the queue.
var ErrNoQueue = errors.New("nobody has opened the queue")

// Queue joins the shared consumer of a queue. Close must follow.
func (b *Bus) Queue(ctx context.Context, queue string) (*Queue, error) {
	api := "$JS.API"
	_, err := b.js.Consumer(ctx, wire.UnitStream, wire.ConsumerName(queue))
	if errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) { // an account of the agents' own
		api = wire.APIPrefix
		_, err = b.imported.Consumer(ctx, wire.UnitStream, wire.ConsumerName(queue))
	}
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("join queue %q: %w", queue, ErrNoQueue)
	case err != nil:
		return nil, fmt.Errorf("join queue %q: %w", queue, err)
	}
	sub, err := b.nc.SubscribeSync(b.nc.NewInbox())
	if err != nil {
		return nil, fmt.Errorf("join queue %q: %w", queue, err)
	}
	return &Queue{nc: b.nc, sub: sub, subject: api + ".CONSUMER.MSG.NEXT." + wire.UnitStream + "." + wire.ConsumerName(queue)}, nil
}

const (
	// pullGrace is how long a request outlives its time with the server until its
	// end must have been heard.
	pullGrace = 500 * time.Millisecond
	// pullLook is how often a wait looks whether the connection still is the one
	// that the request was sent over: the server forgets it with that.
	pullLook = 250 * time.Millisecond
)

// Next waits up to wait for a unit; nil without an error when none came. One
// unit is requested at a time, so nothing prefetched is lost with the agent. A
// unit that comes after ctx has ended is given back by Close.
func (q *Queue) Next(ctx context.Context, wait time.Duration) (*Delivery, error) {
	if err := q.request(wait); err != nil {
		return nil, err
	}
	for {
		limited, cancel := context.WithTimeout(ctx, pullLook)
		m, err := q.sub.NextMsgWithContext(limited)
		cancel()
		switch {
		case m != nil && m.Reply != "":
			q.waiting = time.Time{}
			return received(m, q.nc)
		case m != nil:
			if ended, err := status(m); ended {
				q.waiting = time.Time{}
				return nil, err
			}
		case ctx.Err() != nil:
			return nil, nil
		case errors.Is(err, nats.ErrNoResponders):
			q.waiting = time.Time{}
			return nil, errNoResponders
		case !errors.Is(err, context.DeadlineExceeded):
			q.waiting = time.Time{}
			return nil, fmt.Errorf("wait for a unit: %w", err)
		case q.lost():
			q.waiting = time.Time{}
			return nil, nil
		}
	}
}

// errNoResponders: nobody answers for a queue.
var errNoResponders = fmt.Errorf("ask for a unit: the server has no such queue, until the next run opens it again (%w)", nats.ErrNoResponders)

// lost reports whether the request is no longer with the server.
func (q *Queue) lost() bool {
	return q.nc.Stats().Reconnects != q.link || time.Now().After(q.waiting.Add(pullGrace))
}

// request asks the server for a unit unless it has been asked already.
func (q *Queue) request(wait time.Duration) error {
	if time.Now().Before(q.waiting) {
		return nil
	}
	q.link = q.nc.Stats().Reconnects
	data := fmt.Appendf(nil, `{"batch":1,"expires":%d}`, wait.Nanoseconds())
	if err := q.nc.PublishRequest(q.subject, q.sub.Subject, data); err != nil {
		return fmt.Errorf("ask for a unit: %w", err)
	}
	q.waiting = time.Now().Add(wait)
	return nil
}

// status reads what the server says in place of a unit: that none came, or that
// there is none to be had.
func status(m *nats.Msg) (ended bool, err error) {
	switch code := m.Header.Get("Status"); code {
	case "", "100": // a heartbeat
		return false, nil
	case "404", "408":
		return true, nil
	case "503":
		return true, errNoResponders
	default: // 409: the consumer was deleted, its limit is reached, its leader changed
		return true, fmt.Errorf("ask for a unit: the server ended the request, it is asked again: %s %s", code, m.Header.Get("Description"))
	}
}

// Close leaves the queue and gives back what came too late.
func (q *Queue) Close() {
	_ = q.sub.Unsubscribe() // the server hands nothing to nobody
	for {
		m, err := q.sub.NextMsg(0)
		if m == nil || errors.Is(err, nats.ErrBadSubscription) {
			return
		}
		if m.Reply != "" {
			_ = m.Nak()
		}
	}
}

// Delivery is a unit in an agent's hands.
type Delivery struct {
	Unit        wire.Unit
	Incarnation uint64 // how often the unit has been handed out, this time included
	msg         *nats.Msg
	nc          *nats.Conn
}

func received(m *nats.Msg, nc *nats.Conn) (*Delivery, error) {
	d := &Delivery{msg: m, nc: nc}
	if err := json.Unmarshal(m.Data, &d.Unit); err != nil {
		_ = d.Drop("not a unit: " + err.Error())
		return nil, fmt.Errorf("malformed unit on %s, dropped: %w", m.Subject, err)
	}
	if err := checkVersion(d.Unit.V); err != nil {
		_ = m.NakWithDelay(wire.Heartbeat) // for an agent that speaks it
		return nil, fmt.Errorf("a unit is left to other agents: %w: run the same release everywhere", err)
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, fmt.Errorf("unit %s: %w", d.Unit.ID, err)
	}
	d.Incarnation = meta.NumDelivered
	return d, nil
}

// Ack is where the delivery is acknowledged, for Event.
func (d *Delivery) Ack() string { return d.msg.Reply }

// Confirm renews the claim on the unit for another AckWait, and has the server's
// word that it has heard it.
func (d *Delivery) Confirm(ctx context.Context) error {
	_, err := d.nc.RequestWithContext(ctx, d.msg.Reply, []byte("+WPI"))
	return err
}

// Done removes the unit from the queue; its result must have been published.
func (d *Delivery) Done(ctx context.Context) error { return d.msg.AckSync(nats.Context(ctx)) }

// Drop removes a unit that nobody is to work.
func (d *Delivery) Drop(why string) error { return d.msg.Respond([]byte("+TERM " + why)) }

// GiveBack hands the unit to another agent, after a while.
func (d *Delivery) GiveBack(after time.Duration) error {
	if after <= 0 {
		return d.msg.Nak()
	}
	return d.msg.NakWithDelay(after)
}

// HandOn gives a delivery back on behalf of an agent that died with it; ack is
// where that agent would have acknowledged it. Say it once: the server does not
// fence it, so that a second one takes the unit from whoever has it by then.
func (b *Bus) HandOn(ack string) error {
	if !strings.HasPrefix(ack, "$JS.ACK.") {
		return fmt.Errorf("%q acknowledges nothing", ack)
	}
	return b.nc.Publish(ack, []byte("-NAK"))
}
