package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// job is what a generator is asked to do.
type job struct {
	url      string   // HTTP endpoint
	stdio    []string // or the command of a stdio server
	session  string   // that calls are to bear; empty without, or where the generator opens its own
	callers  int
	rate     int // arrivals per second; 0: each caller makes one call after the other
	inFlight int // most calls at once where there is a rate
	length   time.Duration
	calls    int    // in place of a length
	dir      string // for files of one run
}

// command is how a generator is started.
type command struct {
	args  []string
	env   []string
	stdin io.Reader
}

// said is what a generator says about its run; times in seconds.
type said struct {
	Calls     int64    `json:"calls"` // answered, well or not
	Errors    int64    `json:"errors"`
	Dropped   int64    `json:"dropped,omitempty"`   // due and not made
	Scheduled int64    `json:"scheduled,omitempty"` // where it says so
	P50       float64  `json:"p50_s"`
	P99       float64  `json:"p99_s"`
	LateP50   *float64 `json:"late_p50_s,omitempty"`
	LateP99   *float64 `json:"late_p99_s,omitempty"`
}

// peer is a load generator.
type peer struct {
	name string
	// opens says that it opens sessions by itself.
	opens   bool
	command func(job) command
	said    func(job, []byte) (said, error) // from its standard output
}

func peersOf(t tools, ordeal string) []peer {
	return []peer{ordealPeer(ordeal), wrkPeer(t), vegetaPeer(t), fortioPeer(t), heyPeer(t), autocannonPeer(t), k6Peer(), sdkPeer(t)}
}

// headerFlags says the headers of a call as FLAG NAME<between>VALUE, in fixed order.
func headerFlags(flag, between, session string) []string {
	h := headers(session)
	var args []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		args = append(args, flag, name+between+h[name])
	}
	return args
}

// seconds is a whole or broken number of seconds without a unit.
func seconds(d time.Duration) string { return fmt.Sprint(d.Seconds()) }

// lastJSON decodes the last line of a generator's output.
func lastJSON(out []byte, v any) error {
	if err := json.Unmarshal(lastLine(out), v); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// script writes one beside the files of a run and returns its path.
func script(dir, name string, text []byte) string {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		panic(err) // a folder we made a moment ago
	}
	return path
}

// lastLine is the last one that is not empty.
func lastLine(out []byte) []byte {
	out = bytes.TrimSpace(out)
	return out[bytes.LastIndexByte(out, '\n')+1:]
}
