package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
)

// Queue is an agent's end of a pool's work queue.
type Queue struct {
	cons jetstream.Consumer
}

func consumerName(pool string) string { return "pool-" + pool }

// Queue joins the shared consumer of a pool.
func (b *Bus) Queue(ctx context.Context, pool string) (*Queue, error) {
	cons, err := b.js.CreateOrUpdateConsumer(ctx, wire.UnitStream, jetstream.ConsumerConfig{
		Durable: consumerName(pool), FilterSubject: wire.PoolSubjects(pool), AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: wire.AckWait, MaxDeliver: wire.MaxDeliver, MaxAckPending: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("join pool %q: %w", pool, err)
	}
	return &Queue{cons: cons}, nil
}

// Delivery is a unit in an agent's hands.
type Delivery struct {
	Unit        wire.Unit
	Incarnation uint64 // how often the unit has been handed out, this time included
	msg         jetstream.Msg
}

// Next waits up to wait for a unit; nil without an error when none came. One
// unit is fetched at a time, so nothing prefetched is lost with the agent.
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
	d := &Delivery{msg: m}
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

// InProgress renews the claim on the unit for another AckWait.
func (d *Delivery) InProgress() error { return d.msg.InProgress() }

// Done removes the unit from the queue; its result must have been published.
func (d *Delivery) Done(ctx context.Context) error { return d.msg.DoubleAck(ctx) }

// GiveBack hands the unit to another agent at once.
func (d *Delivery) GiveBack() error { return d.msg.Nak() }

// ErrTooLarge is returned by PublishResult for a result that the server would
// never take: publish a smaller one instead.
var ErrTooLarge = errors.New("too large for the server")

// PublishResult stores a result; a resend of the same one is dropped.
func (b *Bus) PublishResult(ctx context.Context, r *wire.Result) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode result of unit %s: %w", r.Unit, err)
	}
	id := fmt.Sprintf("%s/%s/%d/%d", r.Run, r.Unit, r.Incarnation, r.Seq)
	_, err = b.js.Publish(ctx, wire.ResultSubject(r.Run, r.Unit), data, jetstream.WithMsgID(id))
	switch {
	case errors.Is(err, nats.ErrMaxPayload): // headers count too, so the client's own check decides
		return fmt.Errorf("%w: result of %d bytes exceeds the server's max_payload %d; raise it to %dMB",
			ErrTooLarge, len(data), b.nc.MaxPayload(), wire.MaxPayload>>20)
	case err != nil:
		return fmt.Errorf("publish result of unit %s: %w", r.Unit, err)
	}
	return nil
}

// Announce puts the agent into the fleet registry until three heartbeats pass
// without a renewal.
func (b *Bus) Announce(ctx context.Context, h wire.Hello) error {
	kv, err := b.js.KeyValue(ctx, wire.AgentBucket)
	if err != nil {
		return fmt.Errorf("open the fleet registry: %w", err)
	}
	data, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode agent %s: %w", h.ID, err)
	}
	if _, err := kv.Put(ctx, h.ID, data); err != nil {
		return fmt.Errorf("announce agent %s: %w", h.ID, err)
	}
	return nil
}

// Leave takes the agent out of the registry.
func (b *Bus) Leave(ctx context.Context, id string) error {
	kv, err := b.js.KeyValue(ctx, wire.AgentBucket)
	if err != nil {
		return fmt.Errorf("open the fleet registry: %w", err)
	}
	return kv.Delete(ctx, id)
}

// OnControl calls handle for the control messages of every run.
func (b *Bus) OnControl(handle func(run string, c wire.Control)) (stop func(), err error) {
	prefix := wire.ControlSubject("")
	return subscribe(b, wire.ControlSubject("*"), func(m *nats.Msg, c wire.Control) {
		handle(strings.TrimPrefix(m.Subject, prefix), c)
	})
}

// OnPrepare calls handle for each share of a gang stage that is offered to this
// agent or asked back, each on a goroutine of its own: an agent that is getting
// ready can still say that it is busy. The answer goes back to the controller.
// stop returns once all are answered.
func (b *Bus) OnPrepare(id string, handle func(wire.Prepare) wire.Ready) (stop func(), err error) {
	var answers sync.WaitGroup
	unsubscribe, err := subscribe(b, wire.AgentSubject(id), func(m *nats.Msg, p wire.Prepare) {
		answers.Go(func() {
			ready := wire.Ready{V: wire.Version, Agent: id}
			if err := checkVersion(p.V); err != nil {
				ready.Failure = &wire.Failure{Class: "harness", Message: err.Error()}
			} else {
				ready = handle(p)
			}
			if data, err := json.Marshal(ready); err == nil {
				_ = m.Respond(data) // the controller's deadline covers a lost answer
			}
		})
	})
	return func() { unsubscribe(); answers.Wait() }, err
}

// PublishProgress tells whoever watches; it may be lost.
func (b *Bus) PublishProgress(run string, p wire.Progress) error {
	return b.publish(wire.ProgressSubject(run), p)
}
