package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"ordeal/metrics"
)

// stdioLink talks to one server process. Calls of all sessions share it and are
// told apart by id.
type stdioLink struct {
	*mux
	p      *process
	slot   chan struct{} // held by the one writer
	unsent []byte        // rest of a line whose writer gave up; owned by the slot
	reader sync.WaitGroup
}

// writeSlice is how often a blocked write looks at its context.
const writeSlice = 50 * time.Millisecond

func dialStdio(c *Client) (*stdioLink, error) {
	p, err := startProcess(&c.cfg)
	if err != nil {
		return nil, &StartError{Class: Startup, What: c.cfg.Redactor.Line("the command does not start: "+err.Error(), messageShown),
			Remedy: "check the name, the path and the permissions of the command", cause: err}
	}
	l := &stdioLink{p: p, slot: make(chan struct{}, 1)}
	l.mux = newMux(c, l.writeLine)
	l.reader.Go(l.read)
	return l, nil
}

// writeLine sends one line whole, whatever becomes of ctx in the middle: the
// rest of a line that was begun goes out before the next one.
func (l *stdioLink) writeLine(ctx context.Context, body []byte) (begun bool, err error) {
	select {
	case l.slot <- struct{}{}:
		defer func() { <-l.slot }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if len(l.unsent) > 0 {
		if l.unsent, err = l.push(ctx, l.unsent); err != nil {
			return false, err
		}
	}
	line := append(oneLine(body), '\n')
	rest, err := l.push(ctx, line)
	if begun = len(rest) < len(line); begun && len(rest) > 0 {
		l.unsent = bytes.Clone(rest)
	}
	return begun, err
}

// push writes as much as it can and returns the rest. A pipe that is full blocks
// only in slices, so that ctx is heard.
func (l *stdioLink) push(ctx context.Context, line []byte) (rest []byte, err error) {
	for {
		if err := l.p.stdin.SetWriteDeadline(time.Now().Add(writeSlice)); err != nil {
			return line, err
		}
		n, err := l.p.stdin.Write(line)
		line = line[n:]
		if len(line) == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return line, err
		}
		if ctx.Err() != nil {
			return line, ctx.Err()
		}
	}
}

// read takes lines off stdout until it ends, then fails what is in flight.
func (l *stdioLink) read() {
	err := l.readLines()
	switch {
	case errors.Is(err, errTooLarge):
		// What follows an endless line cannot be framed: drain it, so that the
		// server does not block, and end the link.
		l.end(metrics.Connection, fmt.Sprintf("message too large: more than %d bytes on one line", l.c.cfg.MaxMessage))
		_, _ = io.Copy(io.Discard, l.p.stdout)
	default:
		l.end(metrics.Connection, l.ending())
	}
}

// ending says why stdout ended. A process that is about to end gets a moment to
// do so, since its exit status explains more.
func (l *stdioLink) ending() string {
	select {
	case <-l.p.ended:
	case <-time.After(250 * time.Millisecond):
		return "the server closed its stdout"
	}
	text := "the server process ended: " + l.p.exit()
	if words := l.p.lastWords(); words != "" {
		text += ": stderr: " + words
	}
	return l.c.cfg.Redactor.Line(text, messageShown)
}

var errTooLarge = errors.New("message too large")

func (l *stdioLink) readLines() error {
	r := bufio.NewReaderSize(l.p.stdout, 64<<10)
	for {
		line, owned, err := readLine(r, l.c.cfg.MaxMessage)
		if len(line) > 0 {
			l.receive(bytes.TrimSuffix(line, []byte{'\n'}), owned)
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns a line with its end. It aliases the reader's buffer unless
// owned is true.
func readLine(r *bufio.Reader, max int64) (line []byte, owned bool, err error) {
	line, err = r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, false, err
	}
	long := append(make([]byte, 0, 4*len(line)), line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if int64(len(long)) > max {
			return nil, true, errTooLarge
		}
		line, err = r.ReadSlice('\n')
		long = append(long, line...)
	}
	return long, true, err
}

func (l *stdioLink) notify(ctx context.Context, _ *handle, _ string, body []byte) error {
	_, err := l.write(ctx, body)
	return err
}

func (l *stdioLink) close(context.Context) ShutdownReport {
	l.end(metrics.Cancelled, "the link was closed")
	report := l.p.shutDown(l.c.cfg.StopGrace)
	l.reader.Wait()
	l.wg.Wait()
	return report
}
