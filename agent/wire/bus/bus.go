// Package bus is both ends of NATS: what a controller and an agent do with
// units, results, leases, heartbeats and control messages. Nothing else uses
// nats.go.
//
// A unit waits in a work queue and is handed to one agent at a time; its result
// is published before it is acknowledged, and a result is deduplicated by
// (run, unit, incarnation, sequence, content). An acknowledgement is never taken as
// proof of who did the work: JetStream does not fence acks.
package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
)

// Bus is one connection.
type Bus struct {
	nc   *nats.Conn
	js   jetstream.JetStream
	name string // of the owner, in errors
	// imported is the JetStream API of another account, for agents that have one
	// of their own.
	imported jetstream.JetStream
}

// publishWait bounds the server's answer to a unit that was queued: a leader that
// changed has never heard of it.
const publishWait = 5 * time.Second

// ErrGone is returned by requests to an agent or a controller that is not
// connected: nobody listens. One that hangs does not answer instead.
var ErrGone = errors.New("not connected")

func open(nc *nats.Conn, name string) (*Bus, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(publishWait))
	imported, importErr := jetstream.NewWithAPIPrefix(nc, wire.APIPrefix)
	if err := errors.Join(err, importErr); err != nil {
		nc.Close()
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	return &Bus{nc: nc, js: js, imported: imported, name: name}, nil
}

// Close flushes and ends the connection.
func (b *Bus) Close() {
	_ = b.nc.FlushTimeout(time.Second) // best effort: the connection may be gone
	b.nc.Close()
}

// Connected reports whether the connection stands at the moment.
func (b *Bus) Connected() bool { return b.nc.IsConnected() }

// Server is the URL of the server that is connected to, without credentials;
// empty while there is none.
func (b *Bus) Server() string { return redact(b.nc.ConnectedUrl()) }

// Closed reports whether the connection is given up for good.
func (b *Bus) Closed() bool { return b.nc.IsClosed() }

// Reconnects is how often the connection was lost and made again.
func (b *Bus) Reconnects() uint64 { return b.nc.Stats().Reconnects }

// publish sends without an acknowledgement.
func (b *Bus) publish(subject string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	return b.nc.Publish(subject, data)
}

// request sends v and decodes the answer.
func request[T any](ctx context.Context, b *Bus, subject string, v any) (answer T, err error) {
	data, err := json.Marshal(v)
	if err != nil {
		return answer, fmt.Errorf("encode %T: %w", v, err)
	}
	m, err := b.nc.RequestWithContext(ctx, subject, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return answer, ErrGone
	case err != nil:
		return answer, err
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return answer, fmt.Errorf("malformed answer: %w", err)
	}
	return answer, nil
}

// respond answers a request; a lost answer is covered by the asker's deadline.
func respond(m *nats.Msg, v any) {
	if data, err := json.Marshal(v); err == nil {
		_ = m.Respond(data)
	}
}

// subscribe decodes every message of a subject; a malformed one is dropped, as
// it comes from a peer of another make. handle runs on one goroutine; once stop
// has returned it is not running and is not called again, so stop must not be
// called from inside it.
func subscribe[T any](b *Bus, subject string, handle func(*nats.Msg, T)) (stop func(), err error) {
	var mu sync.Mutex // held while handle runs
	stopped := false
	sub, err := b.nc.Subscribe(subject, func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		var v T
		if !stopped && json.Unmarshal(m.Data, &v) == nil {
			handle(m, v)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	stop = func() {
		_ = sub.Unsubscribe() // an error means that the connection is gone
		if b.nc.IsConnected() {
			_ = b.nc.FlushTimeout(time.Second) // so that the server knows, and says so to others
		}
		mu.Lock()
		defer mu.Unlock()
		stopped = true
	}
	if err := b.nc.Flush(); err != nil {
		stop()
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return stop, nil
}

// errVersion marks a message of another protocol version.
var errVersion = errors.New("other protocol version")

func checkVersion(v int) error {
	if v != wire.Version {
		return fmt.Errorf("%w: message has version %d, this build speaks %d", errVersion, v, wire.Version)
	}
	return nil
}
