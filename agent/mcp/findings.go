package mcp

import (
	"fmt"
	"slices"
	"sync"
)

// maxFindings bounds the kinds of findings kept; a server that invents new ones
// for ever is not worth more memory.
const maxFindings = 100

// findings counts what a server did against the protocol, by kind, with the
// first sample. It is safe for concurrent use.
type findings struct {
	mu    sync.Mutex
	kinds []*finding // in order of first appearance
}

type finding struct {
	what   string
	sample string
	count  int
}

// add counts a finding; the sample of the first one is kept.
func (f *findings) add(what, sample string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.kinds, func(k *finding) bool { return k.what == what })
	if i >= 0 {
		f.kinds[i].count++
		return
	}
	if len(f.kinds) < maxFindings {
		f.kinds = append(f.kinds, &finding{what, sample, 1})
	}
}

// lines renders the findings, one line each.
func (f *findings) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, k := range f.kinds {
		line := k.what
		if k.count > 1 {
			line += fmt.Sprintf(" (%d times)", k.count)
		}
		if k.sample != "" {
			line += ": " + k.sample
		}
		all = append(all, line)
	}
	return all
}
