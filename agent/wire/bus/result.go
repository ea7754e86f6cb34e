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
	// readBatch is how many results are asked for at once: what is under way on a
	// slow link delays all else on it, the renewals of leases too.
	readBatch = 16
	readWait  = time.Second     // of one request
	readQuiet = 3 * time.Second // without a word, not even that nothing came: begin again
	readAgain = 250 * time.Millisecond
	beginWait = time.Second // for a consumer: what a server that was restarted never heard has no answer
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

// reader reads a subject of the result stream, over one subscription: what comes
// late on a slow link is not lost. Its consumer acknowledges nothing, so after a
// lost connection, where messages may have been delivered to nobody, it begins a
// new one behind the last message it has seen.
type reader struct {
	bus        *Bus
	subject    string
	handle     func(*wire.Result)
	seen       func(sequence uint64) // may be nil: told after each message, decoded or not
	sub        *nats.Subscription
	next       string // subject of requests
	asked      int    // messages still to come of the last request
	reconnects uint64
	last       uint64 // sequence in the stream of the last message
	expect     uint64 // sequence in the consumer of the next one
}

// begin makes a consumer behind the last message, and the subscription to read it.
func (r *reader) begin(ctx context.Context) error {
	r.reconnects = r.bus.Reconnects()
	config := jetstream.ConsumerConfig{FilterSubject: r.subject, AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true,
		InactiveThreshold: time.Minute, MaxDeliver: 1, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.last + 1, Replicas: 1}
	cons, err := r.bus.js.CreateConsumer(ctx, wire.ResultStream, config)
	if err != nil {
		return err
	}
	sub, err := r.bus.nc.SubscribeSync(r.bus.nc.NewInbox())
	if err != nil {
		return err
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil { // a request bounds them
		return err
	}
	r.end()
	r.sub, r.asked, r.expect = sub, 0, 1
	r.next = "$JS.API.CONSUMER.MSG.NEXT." + wire.ResultStream + "." + cons.CachedInfo().Name
	return nil
}

func (r *reader) end() {
	if r.sub != nil {
		_ = r.sub.Unsubscribe() // an error means that the connection is gone
	}
}

func (r *reader) read(ctx context.Context) {
	defer func() { r.end() }()
	for ctx.Err() == nil {
		if r.one(ctx) && r.reconnects == r.bus.Reconnects() {
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

// one takes the next message in, and asks for more when there is none to come;
// false when a new consumer is needed.
func (r *reader) one(ctx context.Context) bool {
	if r.asked == 0 {
		request := fmt.Appendf(nil, `{"batch":%d,"expires":%d}`, readBatch, readWait.Nanoseconds())
		if r.bus.nc.PublishRequest(r.next, r.sub.Subject, request) != nil {
			sleep(ctx, readAgain)
			return false
		}
		r.asked = readBatch
	}
	limited, cancel := context.WithTimeout(ctx, readQuiet)
	defer cancel()
	m, err := r.sub.NextMsgWithContext(limited)
	if err != nil {
		return ctx.Err() != nil
	}
	if m.Reply == "" {
		ended, err := status(m)
		if ended {
			r.asked = 0
		}
		return err == nil
	}
	return r.take(m)
}

// take hands a message on; false when one before it is missing.
func (r *reader) take(m *nats.Msg) bool {
	meta, err := m.Metadata()
	if err != nil || meta.Sequence.Consumer != r.expect {
		return false
	}
	r.asked, r.expect, r.last = r.asked-1, r.expect+1, meta.Sequence.Stream
	var res wire.Result
	if json.Unmarshal(m.Data, &res) == nil && checkVersion(res.V) == nil {
		r.handle(&res)
	}
	if r.seen != nil {
		r.seen(r.last)
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
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
