package bus

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
)

// ErrTooLarge is returned by PublishResult for a result that the server would
// never take: publish a smaller one instead.
var ErrTooLarge = errors.New("too large for the server")

// PublishResult stores a result; a resend of the same one is dropped. What tells
// it is the content too: a run that was resumed works a unit again whose part was
// published when it was halted, and counts its deliveries from one again.
func (b *Bus) PublishResult(ctx context.Context, r *wire.Result) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode result of unit %s: %w", r.Unit, err)
	}
	sum := sha256.Sum256(data)
	id := fmt.Sprintf("%s/%s/%d/%d/%x", r.Run, r.Unit, r.Incarnation, r.Seq, sum[:8])
	_, err = b.js.Publish(ctx, wire.ResultSubject(r.Run, r.Agent, r.Unit), data, jetstream.WithMsgID(id))
	switch {
	case errors.Is(err, nats.ErrMaxPayload): // headers count too, so the client's own check decides
		return fmt.Errorf("%w: result of %d bytes exceeds the server's max_payload %d; raise it to %dMB",
			ErrTooLarge, len(data), b.nc.MaxPayload(), wire.MaxPayload>>20)
	case err != nil:
		return fmt.Errorf("publish result of unit %s: %w", r.Unit, err)
	}
	return nil
}

const (
	fetchBatch = 256
	fetchWait  = time.Second // of one fetch: messages are handed on as they come
	readAgain  = 250 * time.Millisecond
	beginWait  = time.Second // for a consumer: what a server that was restarted never heard has no answer
)

// Results delivers every result of a run behind the sequence after (0 = all of
// them) to handle, in the order of the stream and each of them once, until stop
// is called. handle runs on one goroutine. A lost connection delays results, it
// loses none.
func (b *Bus) Results(ctx context.Context, run string, after uint64, handle func(*wire.Result)) (stop func(), err error) {
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &reader{bus: b, subject: wire.RunResults(run), last: after, handle: handle}
	if err := r.begin(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("read results of run %s: %w", run, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.read(reading)
	}()
	return func() { cancel(); <-done }, nil
}

// reader reads a subject of the result stream. Its consumer acknowledges
// nothing, so after a lost connection, where messages may have been delivered to
// nobody, it begins a new one behind the last message it has seen.
type reader struct {
	bus        *Bus
	subject    string
	handle     func(*wire.Result)
	seen       func(sequence uint64) // may be nil: told after each message, decoded or not
	cons       jetstream.Consumer
	reconnects uint64
	last       uint64 // sequence in the stream of the last message
	next       uint64 // sequence in the consumer expected next
}

func (r *reader) begin(ctx context.Context) error {
	r.reconnects = r.bus.Reconnects()
	config := jetstream.ConsumerConfig{FilterSubject: r.subject, AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true,
		InactiveThreshold: time.Minute, MaxDeliver: 1, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.last + 1, Replicas: 1}
	cons, err := r.bus.js.CreateConsumer(ctx, wire.ResultStream, config)
	if err != nil {
		return err
	}
	r.cons, r.next = cons, 1
	return nil
}

func (r *reader) read(ctx context.Context) {
	for ctx.Err() == nil {
		if r.batch(ctx) && r.reconnects == r.bus.Reconnects() {
			continue
		}
		for ctx.Err() == nil {
			limited, cancel := context.WithTimeout(ctx, beginWait)
			err := r.begin(limited)
			cancel()
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(readAgain):
			}
		}
	}
}

// batch hands on what comes within fetchWait; false when a new consumer is
// needed.
func (r *reader) batch(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	batch, err := r.cons.Fetch(fetchBatch, jetstream.FetchContext(limited))
	if err != nil {
		return ctx.Err() != nil
	}
	for m := range batch.Messages() {
		if ctx.Err() != nil { // what was fetched beyond the end is not for handle
			return true
		}
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Consumer != r.next {
			return false
		}
		r.next++
		r.last = meta.Sequence.Stream
		var res wire.Result
		if json.Unmarshal(m.Data(), &res) == nil && checkVersion(res.V) == nil {
			r.handle(&res)
		}
		if r.seen != nil {
			r.seen(r.last)
		}
	}
	switch err := batch.Error(); {
	case err == nil, errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, jetstream.ErrNoMessages):
		return true
	}
	return ctx.Err() != nil
}

// StoredResults reads the results of a run that are stored at the moment and
// returns the sequence of the last one, behind which Results may go on.
func (b *Bus) StoredResults(ctx context.Context, run string, handle func(*wire.Result)) (last uint64, err error) {
	m, err := b.lastResult(ctx, run)
	if err != nil || m == 0 {
		return 0, err
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &reader{bus: b, subject: wire.RunResults(run), handle: handle, seen: func(sequence uint64) {
		if sequence >= m {
			cancel()
		}
	}}
	if err := r.begin(ctx); err != nil {
		return 0, fmt.Errorf("read results of run %s: %w", run, err)
	}
	r.read(reading)
	return m, context.Cause(ctx)
}

// lastResult is the sequence of the last result of a run; 0 when there is none.
func (b *Bus) lastResult(ctx context.Context, run string) (uint64, error) {
	stream, err := b.js.Stream(ctx, wire.ResultStream)
	if err != nil {
		return 0, fmt.Errorf("read results of run %s: %w", run, err)
	}
	m, err := stream.GetLastMsgForSubject(ctx, wire.RunResults(run))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read results of run %s: %w", run, err)
	}
	return m.Sequence, nil
}

// PurgeResults removes the results of a run whose document is stored.
func (b *Bus) PurgeResults(ctx context.Context, run string) error {
	stream, err := b.js.Stream(ctx, wire.ResultStream)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(wire.RunResults(run)))
	}
	if err != nil {
		return fmt.Errorf("remove the results of run %s: %w", run, err)
	}
	return nil
}
