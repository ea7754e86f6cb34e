// Package bus is both ends of NATS: what a controller and an agent do with
// units, results, heartbeats and control messages. Nothing else uses nats.go.
//
// A unit waits in a work queue and is handed to one agent at a time; its result
// is published before it is acknowledged, and a result is deduplicated by
// (run, unit, incarnation, sequence). An acknowledgement is never taken as
// proof of who did the work: JetStream does not fence acks.
package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
)

// Bus is one connection.
type Bus struct {
	nc *nats.Conn
	js jetstream.JetStream
}

// InProcess connects to a server inside this process, without a socket.
func InProcess(name string, server nats.InProcessConnProvider) (*Bus, error) {
	nc, err := nats.Connect("", nats.Name(name), nats.InProcessServer(server))
	if err != nil {
		return nil, fmt.Errorf("connect in process: %w", err)
	}
	return open(nc)
}

// Connect dials the servers of a fleet.
func Connect(name, urls string) (*Bus, error) {
	nc, err := nats.Connect(urls, nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", redact(urls), hideURL(err))
	}
	return open(nc)
}

// redact hides the user, password or token of each of the servers' URLs. It
// cuts text, since a URL that cannot be parsed may hold a secret too.
func redact(urls string) string {
	servers := strings.Split(urls, ",")
	for i, s := range servers {
		at := strings.LastIndex(s, "@")
		if at < 0 {
			continue
		}
		scheme := ""
		if end := strings.Index(s, "://"); end >= 0 && end < at {
			scheme = s[:end+len("://")]
		}
		servers[i] = scheme + "***@" + s[at+1:]
	}
	return strings.Join(servers, ",")
}

// hideURL replaces an error that quotes the URL it could not parse.
func hideURL(err error) error {
	var bad *url.Error
	if errors.As(err, &bad) {
		return errors.New("not a URL: write nats://USER:PASSWORD@HOST:4222, with special characters percent-encoded")
	}
	return err
}

func open(nc *nats.Conn) (*Bus, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	return &Bus{nc: nc, js: js}, nil
}

// Close flushes and ends the connection.
func (b *Bus) Close() {
	_ = b.nc.FlushTimeout(time.Second) // best effort: the connection may be gone
	b.nc.Close()
}

// Setup creates the streams and the fleet registry; it may be called again.
func (b *Bus) Setup(ctx context.Context, storage Storage) error {
	kind := jetstream.MemoryStorage
	if storage == Files {
		kind = jetstream.FileStorage
	}
	_, err := b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: wire.UnitStream, Subjects: []string{wire.UnitSubjects}, Retention: jetstream.WorkQueuePolicy,
		Storage: kind, Duplicates: wire.DedupeWindow, MaxAge: wire.UnitTTL,
	})
	if err != nil {
		return fmt.Errorf("create stream %s: %w", wire.UnitStream, err)
	}
	_, err = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: wire.ResultStream, Subjects: []string{wire.ResultSubjects}, Retention: jetstream.LimitsPolicy,
		Storage: kind, Duplicates: wire.DedupeWindow, MaxAge: wire.ResultTTL,
	})
	if err != nil {
		return fmt.Errorf("create stream %s: %w", wire.ResultStream, err)
	}
	_, err = b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: wire.AgentBucket, TTL: 3 * wire.Heartbeat, LimitMarkerTTL: time.Second, Storage: jetstream.MemoryStorage,
	})
	if err != nil {
		return fmt.Errorf("create bucket %s: %w", wire.AgentBucket, err)
	}
	return nil
}

// Storage of the streams.
type Storage int

const (
	Memory Storage = iota // gone with the server: an embedded run
	Files
)

func (b *Bus) publish(subject string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	return b.nc.Publish(subject, data)
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
		mu.Lock()
		defer mu.Unlock()
		stopped = true
	}
	return stop, b.nc.Flush()
}

// errVersion marks a message of another protocol version.
var errVersion = errors.New("other protocol version")

func checkVersion(v int) error {
	if v != wire.Version {
		return fmt.Errorf("%w: message has version %d, this build speaks %d", errVersion, v, wire.Version)
	}
	return nil
}
