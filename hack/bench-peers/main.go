// Command bench-peers measures ordeal beside other load generators: the same servers,
// the same calls, one processor for the client and one for the server, all of them in
// each repetition. It prints the goals with the medians of the repetitions' ratios,
// writes every run as a line of JSON, and exits 1 when a goal is missed.
//
// run.sh installs the generators, builds what is ours, and starts it:
//
//	./run.sh                        all rows, five repetitions, a quarter of an hour
//	./run.sh -rows 1,2 -reps 1 -d 1s
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	rows   string
	reps   int
	length time.Duration
	full   bool
	tools  string
	ordeal string
	out    string
	detail bool
}

func main() {
	var o options
	flag.StringVar(&o.rows, "rows", "all", "comma list of "+strings.Join(rowNames(), ", "))
	flag.IntVar(&o.reps, "reps", 5, "repetitions")
	flag.DurationVar(&o.length, "d", 3*time.Second, "length of a closed-loop run; open loops last twice, the stall run 10/3 of it (1s to 4s)")
	flag.BoolVar(&o.full, "full", false, "row 17 with 10,000,000 calls in place of 1,000,000")
	flag.StringVar(&o.tools, "tools", "", "folder that install.sh filled")
	flag.StringVar(&o.ordeal, "ordeal", "", "ordeal's binary")
	flag.StringVar(&o.out, "out", "bench-peers.jsonl", "file for a line of JSON per run, written anew")
	flag.BoolVar(&o.detail, "detail", true, "print the medians of every generator too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	met, err := compare(ctx, o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench-peers: %v\n", err)
		os.Exit(2)
	}
	if !met {
		os.Exit(1)
	}
}

// compare runs the repetitions and prints what they came to. It holds when every
// goal was met.
func compare(ctx context.Context, o options) (bool, error) {
	if err := o.validate(); err != nil {
		return false, err
	}
	goals, err := selected(goalsOf(o), o.rows)
	if err != nil {
		return false, err
	}
	b, err := newBench(o)
	if err != nil {
		return false, err
	}
	defer b.close()
	for rep := range o.reps {
		if err := b.repeat(ctx, rep, needed(goals)); err != nil {
			return false, err
		}
	}
	met := printGoals(os.Stdout, goals, b.runs)
	if o.detail {
		printDetail(os.Stdout, b.runs)
	}
	return met, nil
}

func (o options) validate() error {
	switch {
	case o.length < time.Second || o.length > 4*time.Second:
		return fmt.Errorf("-d %v: want 1s to 4s", o.length)
	case o.reps < 1:
		return fmt.Errorf("-reps %d: want 1 or more", o.reps)
	case o.tools == "" || o.ordeal == "":
		return errors.New("-tools and -ordeal are wanted: start run.sh, which knows them")
	}
	return nil
}

// rowNames are those of the goals, in order, each once.
func rowNames() []string {
	var names []string
	for _, g := range goalsOf(options{length: time.Second}) {
		if !slices.Contains(names, g.row) {
			names = append(names, g.row)
		}
	}
	return names
}

// selected keeps the goals of the rows asked for.
func selected(goals []goal, rows string) ([]goal, error) {
	if rows == "all" {
		return goals, nil
	}
	asked := strings.Split(rows, ",")
	for _, row := range asked {
		if !slices.Contains(rowNames(), row) {
			return nil, fmt.Errorf("-rows %q: want some of %s", row, strings.Join(rowNames(), ", "))
		}
	}
	return slices.DeleteFunc(goals, func(g goal) bool { return !slices.Contains(asked, g.row) }), nil
}

// needed are the runs that the goals read, each once.
func needed(goals []goal) map[string]bool {
	keys := map[string]bool{}
	for _, g := range goals {
		for _, key := range g.runs {
			keys[key] = true
		}
	}
	return keys
}

// tools finds what install.sh put into a folder, or what the PATH has.
type tools struct{ dir string }

func (t tools) bin(name string) string  { return filepath.Join(t.dir, "bin", name) }
func (t tools) venv(name string) string { return filepath.Join(t.dir, "venv", "bin", name) }
