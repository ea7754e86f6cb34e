package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
)

func TestRunIsReadBack(t *testing.T) {
	_, b := setup(t)
	want := &wire.Run{ID: "r1", State: wire.Running, Generation: 3, Holder: "host/7", TTL: wire.LeaseTTL, Started: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
		Words: []string{"scan", "mock"}, Order: []byte(`{"a":1}`), Gangs: []wire.GangRecord{{Stage: "s", Gang: "g", Units: []string{"u"}}}}
	revision, err := b.CreateRun(t.Context(), want)
	must(t, err)
	got, read, err := b.Run(t.Context(), "r1")
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" || read != revision || want.V != wire.Version {
		t.Errorf("revision %d, created at %d (-want +got):\n%s", read, revision, diff)
	}
}

func TestRunIsFenced(t *testing.T) {
	_, b := setup(t)
	first, err := b.CreateRun(t.Context(), &wire.Run{ID: "r1", Generation: 1})
	must(t, err)
	if _, err := b.CreateRun(t.Context(), &wire.Run{ID: "r1", Generation: 9}); !errors.Is(err, ErrFenced) {
		t.Errorf("created twice: %v, want %v", err, ErrFenced)
	}
	second, err := b.UpdateRun(t.Context(), &wire.Run{ID: "r1", Generation: 2}, first)
	must(t, err)
	if _, err := b.UpdateRun(t.Context(), &wire.Run{ID: "r1", Generation: 9}, first); !errors.Is(err, ErrFenced) {
		t.Errorf("updated from an old revision: %v, want %v", err, ErrFenced)
	}
	if _, err := b.UpdateRun(t.Context(), &wire.Run{ID: "never"}, second); !errors.Is(err, ErrFenced) {
		t.Errorf("updated a run that is not there: %v, want %v", err, ErrFenced)
	}
	if got, revision, err := b.Run(t.Context(), "r1"); err != nil || got.Generation != 2 || revision != second {
		t.Errorf("%+v at %d, %v; want generation 2 at %d", got, revision, err, second)
	}
}

// Of many controllers that take a run over at once, one gets it.
func TestOneControllerTakesTheRunOver(t *testing.T) {
	srv, b := setup(t)
	revision, err := b.CreateRun(t.Context(), &wire.Run{ID: "r1"})
	must(t, err)
	const controllers = 8
	outcomes := make([]error, controllers)
	var wg sync.WaitGroup
	for i := range controllers {
		other := connect(t, srv, fmt.Sprint("controller-", i))
		wg.Go(func() {
			_, outcomes[i] = other.UpdateRun(t.Context(), &wire.Run{ID: "r1", Generation: 1, Holder: fmt.Sprint(i)}, revision)
		})
	}
	wg.Wait()
	won := 0
	for _, err := range outcomes {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, ErrFenced):
			t.Errorf("err %v, want %v", err, ErrFenced)
		}
	}
	if won != 1 {
		t.Errorf("%d controllers lead the run, want 1", won)
	}
}

func TestRunsThatAreNotThere(t *testing.T) {
	srv := startServer(t)
	b := connect(t, srv, "controller")
	if runs, err := b.Runs(t.Context()); err != nil || len(runs) != 0 {
		t.Errorf("without a store: %v, %v; want no runs", runs, err)
	}
	if _, _, err := b.Run(t.Context(), "r1"); !errors.Is(err, ErrNoRun) {
		t.Errorf("without a store: %v, want %v", err, ErrNoRun)
	}
	must(t, b.Setup(t.Context(), Memory))
	for _, id := range []string{"r1", "", "a b", ">"} {
		if _, _, err := b.Run(t.Context(), id); !errors.Is(err, ErrNoRun) {
			t.Errorf("Run(%q): %v, want %v", id, err, ErrNoRun)
		}
	}
	if _, err := b.Document(t.Context(), "r1"); !errors.Is(err, ErrNoRun) {
		t.Errorf("Document: %v, want %v", err, ErrNoRun)
	}
}

func TestRunsListsThoseOfThisVersion(t *testing.T) {
	_, b := setup(t)
	if runs, err := b.Runs(t.Context()); err != nil || len(runs) != 0 {
		t.Errorf("of an empty store: %v, %v", runs, err)
	}
	for _, id := range []string{"r1", "r2"} {
		_, err := b.CreateRun(t.Context(), &wire.Run{ID: id})
		must(t, err)
	}
	kv, err := b.js.KeyValue(t.Context(), wire.RunBucket)
	must(t, err)
	_, err = kv.Put(t.Context(), "future", fmt.Appendf(nil, `{"v":%d,"id":"future"}`, wire.Version+1))
	must(t, err)
	_, err = kv.Put(t.Context(), "torn", []byte(`{`))
	must(t, err)
	runs, err := b.Runs(t.Context())
	must(t, err)
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	if diff := cmp.Diff([]string{"r1", "r2"}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, _, err := b.Run(t.Context(), "future"); !errors.Is(err, errVersion) {
		t.Errorf("err %v, want one that names the version", err)
	}
}

// A document larger than any message.
func TestDocumentOf20MB(t *testing.T) {
	srv := serve(t, nil)
	b := dial(t, Link{URLs: addr(srv)})
	must(t, b.Setup(t.Context(), Files))
	want := make([]byte, 20<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(want) // never fails
	for range 2 {            // stored again, it is replaced
		must(t, b.StoreDocument(t.Context(), "r1", want))
	}
	got, err := b.Document(t.Context(), "r1")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want the %d that were stored", len(got), err, len(want))
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	srv, b := setup(t)
	srv.Shutdown()
	for name, call := range map[string]func(context.Context) error{
		"Run":      func(ctx context.Context) error { _, _, err := b.Run(ctx, "r1"); return err },
		"Runs":     func(ctx context.Context) error { _, err := b.Runs(ctx); return err },
		"Create":   func(ctx context.Context) error { _, err := b.CreateRun(ctx, &wire.Run{ID: "r1"}); return err },
		"Document": func(ctx context.Context) error { _, err := b.Document(ctx, "r1"); return err },
		"Results":  func(ctx context.Context) error { _, err := b.Results(ctx, "r1", 0, func(*wire.Result) {}); return err },
		"Fleet":    func(ctx context.Context) error { _, err := b.Fleet(ctx); return err },
		"Announce": func(ctx context.Context) error { return b.Announce(ctx, wire.Hello{ID: "a1"}) },
		"Queue":    func(ctx context.Context) error { _, err := b.Queue(ctx, queue); return err },
	} {
		begun := time.Now()
		err := call(within(t, 200*time.Millisecond))
		if took := time.Since(begun); err == nil || took > time.Second {
			t.Errorf("%s: %v after %v; want an error within its 200ms", name, err, took)
		}
	}
}
