package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
)

// PublishUnit queues a unit for a pool. A repeated publish of the same unit
// within the dedupe window is dropped by the server.
func (b *Bus) PublishUnit(ctx context.Context, pool, stage string, u *wire.Unit) error {
	data, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("encode unit %s: %w", u.ID, err)
	}
	_, err = b.js.Publish(ctx, wire.UnitSubject(pool, u.Run, stage), data, jetstream.WithMsgID(u.Run+"/"+u.ID))
	if err != nil {
		return fmt.Errorf("queue unit %s: %w", u.ID, err)
	}
	return nil
}

// Results delivers every result of a run to handle, in the order of the stream,
// until stop is called. handle runs on one goroutine.
func (b *Bus) Results(ctx context.Context, run string, handle func(*wire.Result)) (stop func(), err error) {
	cons, err := b.js.OrderedConsumer(ctx, wire.ResultStream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{wire.RunResults(run)}})
	if err != nil {
		return nil, fmt.Errorf("read results of run %s: %w", run, err)
	}
	consume, err := cons.Consume(func(m jetstream.Msg) {
		var r wire.Result
		if json.Unmarshal(m.Data(), &r) == nil && checkVersion(r.V) == nil {
			handle(&r)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read results of run %s: %w", run, err)
	}
	return consume.Stop, nil
}

// Control tells every agent of a run to go, halt or release.
func (b *Bus) Control(run string, c wire.Control) error {
	c.V = wire.Version
	return b.publish(wire.ControlSubject(run), c)
}

// Prepare asks one agent to take a share of a gang stage and waits until it is
// ready.
func (b *Bus) Prepare(ctx context.Context, agent string, u wire.Unit) (wire.Ready, error) {
	ready, err := b.ask(ctx, agent, wire.Prepare{V: wire.Version, Unit: u})
	if err != nil {
		return ready, fmt.Errorf("agent %s did not get ready for unit %s: %w", agent, u.ID, err)
	}
	return ready, nil
}

// Abort takes a share back from an agent and waits until it has let go of it.
func (b *Bus) Abort(ctx context.Context, agent string, u wire.Unit) error {
	if _, err := b.ask(ctx, agent, wire.Prepare{V: wire.Version, Unit: u, Abort: true}); err != nil {
		return fmt.Errorf("take unit %s back from agent %s: %w", u.ID, agent, err)
	}
	return nil
}

func (b *Bus) ask(ctx context.Context, agent string, p wire.Prepare) (wire.Ready, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return wire.Ready{}, fmt.Errorf("encode: %w", err)
	}
	m, err := b.nc.RequestWithContext(ctx, wire.AgentSubject(agent), data)
	if err != nil {
		return wire.Ready{}, err
	}
	var ready wire.Ready
	if err := json.Unmarshal(m.Data, &ready); err != nil {
		return wire.Ready{}, fmt.Errorf("malformed answer: %w", err)
	}
	return ready, checkVersion(ready.V)
}

// Agents lists the fleet registry.
func (b *Bus) Agents(ctx context.Context) ([]wire.Hello, error) {
	kv, err := b.js.KeyValue(ctx, wire.AgentBucket)
	if err != nil {
		return nil, fmt.Errorf("open the fleet registry: %w", err)
	}
	keys, err := kv.Keys(ctx)
	if errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	var fleet []wire.Hello
	for _, key := range keys {
		entry, err := kv.Get(ctx, key)
		var h wire.Hello
		if err == nil && json.Unmarshal(entry.Value(), &h) == nil {
			fleet = append(fleet, h)
		}
	}
	return fleet, nil
}

// WatchProgress calls handle for each sign of life of the run's units.
func (b *Bus) WatchProgress(run string, handle func(wire.Progress)) (stop func(), err error) {
	return subscribe(b, wire.ProgressSubject(run), func(_ *nats.Msg, p wire.Progress) { handle(p) })
}

// Purge takes the units of a run that nobody has begun out of a pool's queue.
func (b *Bus) Purge(ctx context.Context, pool, run string) error {
	stream, err := b.js.Stream(ctx, wire.UnitStream)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(wire.RunSubjects(pool, run)))
	}
	if err != nil {
		return fmt.Errorf("take back the queued units of run %s: %w", run, err)
	}
	return nil
}

// Poisoned calls handle with each unit of the run that was handed out
// MaxDeliver times without success, and removes it from the queue. Units of
// other runs of the pool are left to their owners.
func (b *Bus) Poisoned(ctx context.Context, pool, run string, handle func(*wire.Unit)) (stop func(), err error) {
	type advisory struct {
		StreamSeq uint64 `json:"stream_seq"`
	}
	subject := "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES." + wire.UnitStream + "." + consumerName(pool)
	return subscribe(b, subject, func(_ *nats.Msg, a advisory) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		stream, err := b.js.Stream(ctx, wire.UnitStream)
		if err != nil {
			return
		}
		raw, err := stream.GetMsg(ctx, a.StreamSeq)
		var u wire.Unit
		if err != nil || json.Unmarshal(raw.Data, &u) != nil || u.Run != run {
			return
		}
		_ = stream.DeleteMsg(ctx, a.StreamSeq) // a leftover is reported again, not worked
		handle(&u)
	})
}
