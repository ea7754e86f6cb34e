package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
			switch {
			case alreadyQueued(err):
				return nil
			case full(err):
				return fmt.Errorf("queue unit %s: %w %s: %w; raise its limits, or free space for JetStream", s.unit, ErrFull, wire.UnitStream, err)
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

// ErrFull is returned by PublishUnits when the stream of units has no room.
var ErrFull = errors.New("no room in stream")

// storeFailed is the server's code for a message that a stream would not take;
// its description says why.
const storeFailed = 10077

func full(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == storeFailed
}

// alreadyQueued tells the refusal of a second message of a unit.
func alreadyQueued(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == storeFailed && api.Description == "maximum messages per subject exceeded"
}

// QueuedUnits are the units of a run that are in a queue, begun or not.
func (b *Bus) QueuedUnits(ctx context.Context, queue, run string) (map[string]bool, error) {
	stream, err := b.js.Stream(ctx, wire.UnitStream)
	if err != nil {
		return nil, fmt.Errorf("read the queue of run %s: %w", run, err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(wire.RunUnits(queue, run)))
	if err != nil {
		return nil, fmt.Errorf("read the queue of run %s: %w", run, err)
	}
	units := make(map[string]bool, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		units[wire.LastToken(subject)] = true
	}
	return units, nil
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
