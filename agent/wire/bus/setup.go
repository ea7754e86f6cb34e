package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
)

// Storage of the streams.
type Storage int

const (
	Memory Storage = iota // gone with the server: an embedded run
	Files
)

func (s Storage) kind() jetstream.StorageType {
	if s == Files {
		return jetstream.FileStorage
	}
	return jetstream.MemoryStorage
}

// replicas of every stream in a cluster: one server may be lost.
const replicas = 3

// Setup creates the streams, the fleet registry and the stores of runs; it may
// be called again. In a cluster each is kept on three servers.
func (b *Bus) Setup(ctx context.Context, storage Storage) error {
	copies := 1
	if b.nc.ConnectedClusterName() != "" {
		copies = replicas
	}
	err := b.setup(ctx, storage, copies)
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return errors.New("the NATS server has no JetStream, which keeps the units and results of runs: start it with nats-server -js")
	}
	if copies > 1 && noSuchPeers(err) { // a cluster of one or two
		return b.setup(ctx, storage, 1)
	}
	return err
}

// noSuchPeers tells the server's "no suitable peers for placement" and
// "replicas > 1 not supported in non-clustered mode".
func noSuchPeers(err error) bool {
	var api jetstream.JetStreamError
	return errors.As(err, &api) && api.APIError() != nil && (api.APIError().ErrorCode == 10005 || api.APIError().ErrorCode == 10074)
}

func (b *Bus) setup(ctx context.Context, storage Storage, copies int) error {
	streams := []jetstream.StreamConfig{{
		// One message per unit: a unit that is queued or in hand cannot be queued
		// again.
		Name: wire.UnitStream, Subjects: []string{wire.UnitSubjects}, Retention: jetstream.WorkQueuePolicy,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		Duplicates: wire.DedupeWindow, MaxAge: wire.UnitTTL,
	}, {
		// A full stream refuses results; it never drops older ones.
		Name: wire.ResultStream, Subjects: []string{wire.ResultSubjects}, Retention: jetstream.LimitsPolicy,
		Discard: jetstream.DiscardNew, Duplicates: wire.DedupeWindow, MaxAge: wire.ResultTTL,
	}, registry}
	for _, s := range streams {
		s.Storage, s.Replicas = storage.kind(), copies
		if err := b.stream(ctx, s); err != nil {
			return fmt.Errorf("create stream %s: %w", s.Name, err)
		}
	}
	runs := jetstream.KeyValueConfig{Bucket: wire.RunBucket, TTL: wire.RunTTL, Storage: storage.kind(), Replicas: copies}
	if _, err := b.js.CreateOrUpdateKeyValue(ctx, runs); err != nil {
		return fmt.Errorf("create bucket %s: %w", runs.Bucket, err)
	}
	_, err := b.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: wire.BlobBucket, TTL: wire.RunTTL, Storage: storage.kind(), Replicas: copies})
	if err != nil {
		return fmt.Errorf("create object store %s: %w", wire.BlobBucket, err)
	}
	return nil
}

// registry is the stream of the bucket of agents: a key-value bucket (ADR-8)
// without roll-ups: an agent that may write its own
// key could delete all others with them, by one header of its message. Markers
// of expired keys would need them. It is stored as the other streams are: a
// server that restarts must not forget a bucket that no agent may create.
var registry = jetstream.StreamConfig{
	Name: "KV_" + wire.AgentBucket, Subjects: []string{wire.RegistrySubject(">")}, MaxMsgsPerSubject: 1, MaxAge: silence,
	Duplicates: silence, Discard: jetstream.DiscardNew, DenyDelete: true, AllowDirect: true,
}

// stream creates a stream, or updates it and leaves the limits of size that its
// administrator has set.
func (b *Bus) stream(ctx context.Context, want jetstream.StreamConfig) error {
	have, err := b.js.Stream(ctx, want.Name)
	if err == nil {
		set := have.CachedInfo().Config
		want.MaxBytes, want.MaxMsgs, want.Storage = set.MaxBytes, set.MaxMsgs, set.Storage
	} else if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	_, err = b.js.CreateOrUpdateStream(ctx, want)
	return err
}
