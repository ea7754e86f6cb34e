package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/spec"
)

const (
	// listWait bounds reading the records.
	listWait = 10 * time.Second
	// lastRun names the run that was started last.
	lastRun = "last"
	// namedAtOnce is how many candidates an error names.
	namedAtOnce = 3
)

// allRuns are the records of all runs, the youngest first.
func allRuns(ctx context.Context, b *bus.Bus) ([]*wire.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	all, err := b.Runs(ctx)
	slices.SortFunc(all, func(x, y *wire.Run) int {
		return cmp.Or(y.Started.Compare(x.Started), strings.Compare(y.ID, x.ID))
	})
	return all, err
}

// findRun finds the run that a word means.
func findRun(ctx context.Context, b *bus.Bus, word string) (*wire.Run, error) {
	all, err := allRuns(ctx, b)
	if err != nil {
		return nil, err
	}
	return pickRun(all, word)
}

// pickRun picks the run that a word means: an id, the beginning of one id alone,
// or last. all has the youngest first.
func pickRun(all []*wire.Run, word string) (*wire.Run, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("no run %q: there is no run on these servers", word)
	}
	if word == lastRun {
		return all[0], nil
	}
	var ids, begin []string
	var found *wire.Run
	for _, r := range all {
		if r.ID == word {
			return r, nil
		}
		ids = append(ids, r.ID)
		if word != "" && strings.HasPrefix(r.ID, word) {
			begin = append(begin, r.ID)
			found = r
		}
	}
	switch len(begin) {
	case 0:
		return nil, unknownRun(word, ids)
	case 1:
		return found, nil
	}
	return nil, fmt.Errorf("run %q is not one but %d: %s; write more of it", word, len(begin), some(begin))
}

func unknownRun(word string, ids []string) error {
	hint := ""
	if near := spec.Nearest(word, append(ids, lastRun)); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return fmt.Errorf("no run %q%s: see ordeal runs list", word, hint)
}

// some names the first of many.
func some(names []string) string {
	if more := len(names) - namedAtOnce; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namedAtOnce], ", "), more)
	}
	return strings.Join(names, ", ")
}
