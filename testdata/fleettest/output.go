package fleettest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
)

// tailLines is how much of each log a failed test prints.
const tailLines = 40

// output collects what a process writes, and can be waited on.
type output struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{} // closed at the next write; nil while nobody waits
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// line returns the first whole line that holds text, or "", and a channel that
// is closed when there is more to read.
func (o *output) line(text string) (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(o.buf.String()) {
		if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
			return strings.TrimSuffix(line, "\n"), nil
		}
	}
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return "", o.changed
}

// wait returns the first line that holds text. It gives up when ctx ends, or
// with the process, after which nothing more comes.
func (o *output) wait(ctx context.Context, text string, ended <-chan struct{}) (string, error) {
	for {
		over := false
		select {
		case <-ended:
			over = true // all has been written: one more look
		default:
		}
		line, more := o.line(text)
		switch {
		case line != "":
			return line, nil
		case over:
			return "", fmt.Errorf("ended without a line that holds %q", text)
		}
		select {
		case <-more:
		case <-ended:
		case <-ctx.Done():
			return "", fmt.Errorf("no line that holds %q: %w", text, context.Cause(ctx))
		}
	}
}

// tail is the last lines, with a word on what is left out.
func (o *output) tail() string {
	lines := strings.SplitAfter(o.String(), "\n")
	if cut := len(lines) - tailLines; cut > 0 {
		return fmt.Sprintf("[%d lines before]\n%s", cut, strings.Join(lines[cut:], ""))
	}
	return strings.Join(lines, "")
}
