package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// bench runs experiments and keeps what they gave.
type bench struct {
	tools       tools
	peers       map[string]peer
	experiments []experiment
	dir         string // of temporary files
	raw         *os.File
	runs        []run
	back        func() // undoes goFirst
}

func newBench(o options) (*bench, error) {
	b := &bench{tools: tools{dir: o.tools}, peers: map[string]peer{}, experiments: experimentsOf(o)}
	for _, p := range append(peersOf(b.tools, o.ordeal), ordealScan(o.ordeal), rateMyAgent(b.tools)) {
		b.peers[p.name] = p
	}
	var err error
	if b.dir, err = os.MkdirTemp("", "bench-peers-"); err != nil {
		return nil, err
	}
	if b.raw, err = os.Create(o.out); err != nil {
		os.RemoveAll(b.dir)
		return nil, err
	}
	b.back = goFirst()
	path, _ := filepath.Abs(o.out)
	fmt.Fprintf(os.Stderr, "bench-peers: a line per run in %s\n", path)
	return b, nil
}

func (b *bench) close() {
	b.back()
	b.raw.Close() // each row was written, and that checked, when it was made
	os.RemoveAll(b.dir)
}

// repeat makes each needed run once. Who goes first changes from one repetition to
// the next, so that nobody always has the machine after the same other.
func (b *bench) repeat(ctx context.Context, rep int, needed map[string]bool) error {
	for _, e := range b.experiments {
		names := e.wanted(needed)
		for i := range names {
			p := b.peers[names[(i+rep)%len(names)]]
			if p.command == nil {
				continue // not installed
			}
			r := b.measure(ctx, e, p, rep)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			b.runs = append(b.runs, r)
			fmt.Fprintln(os.Stderr, r.line())
			if err := json.NewEncoder(b.raw).Encode(r); err != nil {
				return fmt.Errorf("write the raw rows: %w", err)
			}
		}
	}
	return nil
}

// line tells whoever waits how it goes.
func (r run) line() string {
	head := fmt.Sprintf("%d %-12s %-12s", r.Rep+1, r.Experiment, r.Peer)
	if r.Failed != "" {
		return head + " failed: " + r.Failed
	}
	loud := ""
	if r.Loud {
		loud = "  loud"
	}
	return fmt.Sprintf("%s %8d calls %9.0f/s %7.1f µs CPU a call %5.1f MB %6.2f s  others %.0f%%%s",
		head, r.Arrived, r.Steady.rate(), 1e6*r.CPUS/float64(max(1, r.Arrived)), float64(r.PeakBytes)/1e6, r.WallS, 100*r.Others, loud)
}
