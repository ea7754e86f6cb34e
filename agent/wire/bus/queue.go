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

// maxWaiting bounds how many agents can wait for a unit of one queue at once.
const maxWaiting = 16_384

// queueConfig is the shared consumer of a queue. Deliveries are not bounded
// here: the controller counts how often a unit was really begun.
func queueConfig(queue string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: wire.ConsumerName(queue), FilterSubject: wire.QueueSubjects(queue), AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: wire.AckWait, MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxWaiting,
	}
}

// OpenQueue creates the shared consumer of a queue, for those who may not.
func (b *Bus) OpenQueue(ctx context.Context, queue string) error {
	if _, err := b.js.CreateOrUpdateConsumer(ctx, wire.UnitStream, queueConfig(queue)); err != nil {
		return fmt.Errorf("open queue %q: %w", queue, err)
	}
	return nil
}

// Queue is an agent's end of a pool's work queue.
type Queue struct {
	cons jetstream.Consumer
	nc   *nats.Conn
}

// ErrNoQueue is returned by Queue while nobody has opened the queue.
var ErrNoQueue = errors.New("nobody has opened the queue")

// Queue joins the shared consumer of a queue.
func (b *Bus) Queue(ctx context.Context, queue string) (*Queue, error) {
	cons, err := b.js.Consumer(ctx, wire.UnitStream, wire.ConsumerName(queue))
	if errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) { // an account of the agents' own
		cons, err = b.imported.Consumer(ctx, wire.UnitStream, wire.ConsumerName(queue))
	}
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("join queue %q: %w", queue, ErrNoQueue)
	case err != nil:
		return nil, fmt.Errorf("join queue %q: %w", queue, err)
	}
	return &Queue{cons: cons, nc: b.nc}, nil
}

// Delivery is a unit in an agent's hands.
type Delivery struct {
	Unit        wire.Unit
	Incarnation uint64 // how often the unit has been handed out, this time included
	msg         jetstream.Msg
	nc          *nats.Conn
}

// Next waits up to wait for a unit; nil without an error when none came. One
// unit is fetched at a time, so nothing prefetched is lost with the agent, and
// the iterator of nats.go, which stalls now and then, is not used.
func (q *Queue) Next(ctx context.Context, wait time.Duration) (*Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	m, err := q.cons.Next(jetstream.FetchContext(ctx))
	switch {
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, jetstream.ErrNoMessages):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("fetch a unit: %w", err)
	}
	d := &Delivery{msg: m, nc: q.nc}
	if err := json.Unmarshal(m.Data(), &d.Unit); err != nil {
		_ = m.TermWithReason("not a unit: " + err.Error())
		return nil, fmt.Errorf("malformed unit on %s: %w", m.Subject(), err)
	}
	if err := checkVersion(d.Unit.V); err != nil {
		_ = m.NakWithDelay(wire.Heartbeat) // for an agent that speaks it
		return nil, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, fmt.Errorf("unit %s: %w", d.Unit.ID, err)
	}
	d.Incarnation = meta.NumDelivered
	return d, nil
}

// Ack is where the delivery is acknowledged, for Event.
func (d *Delivery) Ack() string { return d.msg.Reply() }

// InProgress renews the claim on the unit for another AckWait.
func (d *Delivery) InProgress() error { return d.msg.InProgress() }

// Confirm is InProgress with the server's word that it has heard it.
func (d *Delivery) Confirm(ctx context.Context) error {
	_, err := d.nc.RequestWithContext(ctx, d.msg.Reply(), []byte("+WPI"))
	return err
}

// Done removes the unit from the queue; its result must have been published.
func (d *Delivery) Done(ctx context.Context) error { return d.msg.DoubleAck(ctx) }

// Drop removes a unit that nobody is to work.
func (d *Delivery) Drop(why string) error { return d.msg.TermWithReason(why) }

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

// outstanding bounds the publishes without an answer: a publisher far ahead of
// the server starves its consumers.
const outstanding = 256

// PublishUnits queues units. One that is queued already, or in an agent's
// hands, stays as it is.
func (b *Bus) PublishUnits(ctx context.Context, queue string, units []*wire.Unit) error {
	type sent struct {
		unit   string
		future jetstream.PubAckFuture
	}
	var waiting []sent
	settle := func(s sent) error {
		select {
		case <-s.future.Ok():
			return nil
		case err := <-s.future.Err():
			if alreadyQueued(err) {
				return nil
			}
			return fmt.Errorf("queue unit %s: %w", s.unit, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, u := range units {
		data, err := json.Marshal(u)
		if err != nil {
			return fmt.Errorf("encode unit %s: %w", u.ID, err)
		}
		future, err := b.js.PublishAsync(wire.UnitSubject(queue, u.Run, u.ID), data, jetstream.WithMsgID(fmt.Sprintf("%s/%s/%d", u.Run, u.ID, u.Gen)))
		if err != nil {
			return fmt.Errorf("queue unit %s: %w", u.ID, err)
		}
		if waiting = append(waiting, sent{u.ID, future}); len(waiting) == outstanding {
			if err := settle(waiting[0]); err != nil {
				return err
			}
			waiting = waiting[1:]
		}
	}
	for _, s := range waiting {
		if err := settle(s); err != nil {
			return err
		}
	}
	return nil
}

// alreadyQueued tells the refusal of a second message of a unit.
func alreadyQueued(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == 10077
}

// Purge takes the units of a run that are still there out of a queue.
func (b *Bus) Purge(ctx context.Context, queue, run string) error {
	stream, err := b.js.Stream(ctx, wire.UnitStream)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(wire.RunUnits(queue, run)))
	}
	if err != nil {
		return fmt.Errorf("take back the queued units of run %s: %w", run, err)
	}
	return nil
}

// Remove takes one unit out of a queue, wherever it is.
func (b *Bus) Remove(ctx context.Context, queue, run, unit string) error {
	stream, err := b.js.Stream(ctx, wire.UnitStream)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(wire.UnitSubject(queue, run, unit)))
	}
	if err != nil {
		return fmt.Errorf("take unit %s out of the queue: %w", unit, err)
	}
	return nil
}
