package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
)

var (
	// ErrFenced is returned by UpdateRun when somebody else has written the
	// record since: this controller leads the run no more.
	ErrFenced = errors.New("another controller has taken the run over")
	// ErrNoRun is returned where a run is not known (any more).
	ErrNoRun = errors.New("no such run")
)

// CreateRun stores the record of a new run and returns its revision.
func (b *Bus) CreateRun(ctx context.Context, r *wire.Run) (revision uint64, err error) {
	return b.putRun(ctx, r, func(kv jetstream.KeyValue, data []byte) (uint64, error) { return kv.Create(ctx, r.ID, data) })
}

// UpdateRun replaces the record if it is still at the revision that the caller
// has seen last; ErrFenced when it is not.
func (b *Bus) UpdateRun(ctx context.Context, r *wire.Run, revision uint64) (uint64, error) {
	return b.putRun(ctx, r, func(kv jetstream.KeyValue, data []byte) (uint64, error) { return kv.Update(ctx, r.ID, data, revision) })
}

func (b *Bus) putRun(ctx context.Context, r *wire.Run, put func(jetstream.KeyValue, []byte) (uint64, error)) (uint64, error) {
	r.V = wire.Version
	data, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("encode run %s: %w", r.ID, err)
	}
	kv, err := b.js.KeyValue(ctx, wire.RunBucket)
	if err != nil {
		return 0, fmt.Errorf("open the store of runs: %w", err)
	}
	revision, err := put(kv, data)
	if errors.Is(err, jetstream.ErrKeyExists) {
		return 0, fmt.Errorf("run %s: %w", r.ID, ErrFenced)
	}
	if err != nil {
		return 0, fmt.Errorf("store run %s: %w", r.ID, err)
	}
	return revision, nil
}

// Run reads the record of a run and its revision; ErrNoRun when there is none.
func (b *Bus) Run(ctx context.Context, id string) (*wire.Run, uint64, error) {
	kv, err := b.js.KeyValue(ctx, wire.RunBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, 0, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open the store of runs: %w", err)
	}
	entry, err := kv.Get(ctx, id)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrInvalidKey):
		return nil, 0, fmt.Errorf("run %s: %w", id, ErrNoRun)
	case err != nil:
		return nil, 0, fmt.Errorf("read run %s: %w", id, err)
	}
	return decodeRun(entry)
}

func decodeRun(entry jetstream.KeyValueEntry) (*wire.Run, uint64, error) {
	var r wire.Run
	if err := json.Unmarshal(entry.Value(), &r); err != nil {
		return nil, 0, fmt.Errorf("run %s: malformed record: %w", entry.Key(), err)
	}
	return &r, entry.Revision(), checkVersion(r.V)
}

// Runs lists the records of all runs, in no order; those of another protocol
// version are left out.
func (b *Bus) Runs(ctx context.Context) ([]*wire.Run, error) {
	kv, err := b.js.KeyValue(ctx, wire.RunBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the store of runs: %w", err)
	}
	watch, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	defer func() { _ = watch.Stop() }()
	var all []*wire.Run
	for {
		select {
		case entry, ok := <-watch.Updates():
			if !ok || entry == nil {
				return all, nil
			}
			if r, _, err := decodeRun(entry); err == nil {
				all = append(all, r)
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("list runs: %w", context.Cause(ctx))
		}
	}
}

// StoreDocument keeps the result document of a run for wire.RunTTL.
func (b *Bus) StoreDocument(ctx context.Context, run string, document []byte) error {
	store, err := b.js.ObjectStore(ctx, wire.BlobBucket)
	if err == nil {
		_, err = store.PutBytes(ctx, documentName(run), document)
	}
	if err != nil {
		return fmt.Errorf("store the document of run %s: %w", run, err)
	}
	return nil
}

// Document reads the result document of a run; ErrNoRun when there is none.
func (b *Bus) Document(ctx context.Context, run string) ([]byte, error) {
	store, err := b.js.ObjectStore(ctx, wire.BlobBucket)
	if err != nil {
		return nil, fmt.Errorf("open the store of documents: %w", err)
	}
	object, err := store.Get(ctx, documentName(run))
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, fmt.Errorf("document of run %s: %w", run, ErrNoRun)
	}
	if err != nil {
		return nil, fmt.Errorf("read the document of run %s: %w", run, err)
	}
	defer object.Close()
	return io.ReadAll(object)
}

func documentName(run string) string { return "run/" + run + "/result.json" }
