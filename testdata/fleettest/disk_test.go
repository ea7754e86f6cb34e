package fleettest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Each way to mount that this machine allows gives a disk that fills at its
// size; SmallDisk would take the first.
func TestSmallDiskFills(t *testing.T) {
	const size = 1 << 20
	worked := 0
	for _, way := range waysToMount {
		dir, err := way.mount(t, size)
		if err != nil {
			t.Logf("%s: %v", way.name, err)
			continue
		}
		worked++
		n, err := fill(filepath.Join(dir, "file"))
		if !errors.Is(err, syscall.ENOSPC) || n > size || n < size/2 {
			t.Errorf("%s: %d bytes, then %v; want about %d and then no space", way.name, n, err, size)
		}
	}
	if worked == 0 {
		t.Error("no way to a small disk")
	}
}

// fill writes until it cannot, or 16 MiB.
func fill(path string) (written int, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for written < 16<<20 {
		n, err := f.Write(make([]byte, 64<<10))
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// What a full disk does to nats-server 2.15: the publish that does not fit is
// never answered, nor is any other on that stream, however small; a purge is
// refused. Reading goes on. After a restart a purge works, and nothing that was
// acknowledged is lost.
func TestFullStore(t *testing.T) {
	const size, chunk = 8 << 20, 256 << 10
	n := StartNATS(t, NATSOptions{Store: SmallDisk(t, size), MaxFile: 1 << 30})
	js := connect(t, n.URL())
	stream, err := js.CreateStream(within(t, 5*time.Second), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(n int) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := js.Publish(ctx, "s", make([]byte, n))
		return err
	}
	accepted := 0
	for err == nil && accepted*chunk <= size {
		if err = publish(chunk); err == nil {
			accepted++
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) || accepted*chunk < size/2 {
		t.Errorf("accepted %d bytes, then %v; want silence before %d", accepted*chunk, err, size)
	}
	if !strings.Contains(n.Log(), "no space left on device") || !n.Proc().Running() {
		t.Errorf("running %v; want a server that runs and complains of its disk\n%s", n.Proc().Running(), n.Log())
	}
	if err := publish(1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a small publish: %v, want silence", err)
	}
	if err := stream.Purge(within(t, 5*time.Second)); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("purge: %v, want a refusal", err)
	}
	if _, err := stream.GetMsg(within(t, 5*time.Second), uint64(accepted)); err != nil {
		t.Errorf("read: %v", err)
	}
	n.Restart(t)
	if got := stored(t, connect(t, n.URL()), "S"); got != uint64(accepted) {
		t.Errorf("%d messages after a restart, want the %d acknowledged", got, accepted)
	}
	if err := stream.Purge(within(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
	for ctx := within(t, 5*time.Second); free(t, n.Store()) < size/2; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil { // a purge answers before it has given the space back
			t.Fatalf("%d bytes free after a purge", free(t, n.Store()))
		}
	}
	if err := publish(chunk); err != nil {
		t.Errorf("with room again: %v\n%s", err, n.Log())
	}
}

func free(t *testing.T, dir string) int64 {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Bavail) * fs.Bsize
}

// connect is a client that comes back by itself.
func connect(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
