package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/cmd/internal/cli"
	"ordeal/testdata/fleettest"
)

// A result stream that is full ends the run with an error that says which stream
// it is and what to do; once that is done, the run goes on where it stood.
func resultStreamFull(t *testing.T) {
	w := newWorld(t, "a", "b") // whose agents have created the streams
	w.limitResults(1_000_000)  // bytes; the scan has some four times that
	scan := w.scan(mockScanArgs...)
	run := runOf(t, scan)
	said := w.failed(scan, wire.ResultStream, "ordeal runs resume "+run)
	w.limitResults(-1)
	doc := w.report(w.resume(run))
	row{"result stream at its limit", "1 MB", fmt.Sprintf("exit code 2, %q; resumed: %s", said, denominatorsOf(doc)), sameAsWhole(t, mockScanArgs, doc)}.note(t)
}

// limitResults bounds the stream of results; -1 is no bound.
func (w *world) limitResults(bytes int64) {
	w.t.Helper()
	js, ctx := w.jetStream(), within(w.t, 10*time.Second)
	s, err := js.Stream(ctx, wire.ResultStream)
	if err != nil {
		w.t.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.MaxBytes = bytes
	if _, err := js.UpdateStream(ctx, config); err != nil {
		w.t.Fatal(err)
	}
}

// failed waits for a scan that could not be carried out and returns the beginning
// of its error, which is one and holds all wants.
func (w *world) failed(scan *fleettest.Proc, wants ...string) string {
	w.t.Helper()
	code, err := scan.Wait(within(w.t, faultWait))
	_, said, found := strings.Cut("\n"+scan.Stderr(), "\nerror: ")
	if code != cli.Unmeasured || err != nil || !found || strings.Contains(said, "\nerror: ") {
		w.t.Fatalf("exit code %d, %v, stderr:\n%s\nwant %d and one error", code, err, scan.Stderr(), cli.Unmeasured)
	}
	for _, want := range wants {
		if !strings.Contains(said, want) {
			w.t.Errorf("error %q lacks %q", said, want)
		}
	}
	said, _, _ = strings.Cut(said, ":")
	return said
}

// A disk that is full under JetStream is the same, only that nats-server 2.15
// must be started again before it takes anything more.
func diskFull(t *testing.T) {
	const disk, room = 16 << 20, 2 << 20 // bytes; the scan has more than the room for results
	n := fleettest.StartNATS(t, fleettest.NATSOptions{Store: fleettest.SmallDisk(t, disk), MaxFile: 1 << 30})
	w := worldAt(t, n.URL(), "a", "b")
	ballast := filepath.Join(n.Store(), "ballast")
	fillDisk(t, ballast, room)
	scan := w.scan(mockScanArgs...)
	run := runOf(t, scan)
	said := w.failed(scan, "disk", "ordeal runs resume "+run)
	if !strings.Contains(n.Log(), "no space left on device") {
		t.Errorf("the disk was never full")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	n.Restart(t)
	doc := w.report(w.resume(run))
	if d := w.spy.denominators(); doc.Run.Reissued < d.begun {
		t.Errorf("%d operations reissued, want at least the %d that were begun again", doc.Run.Reissued, d.begun)
	}
	row{"disk full under JetStream", "2 MB free", fmt.Sprintf("exit code 2, %q; resumed: %s", said, denominatorsOf(doc)), sameAsWhole(t, mockScanArgs, doc)}.note(t)
}

// fillDisk leaves so many bytes of room on a file's disk. What it writes cannot
// be compressed or left out.
func fillDisk(t *testing.T, path string, room int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	_, _ = rand.Read(block) // never fails
	for {
		var fs syscall.Statfs_t
		if err := syscall.Fstatfs(int(f.Fd()), &fs); err != nil {
			t.Fatal(err)
		}
		if int64(fs.Bavail)*fs.Bsize <= room {
			return
		}
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
}
