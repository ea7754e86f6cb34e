package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ordeal/metrics"
)

// stdioLink talks to one server process. Calls of all sessions share it and are
// told apart by id.
type stdioLink struct {
	*mux
	p    *process
	out  *outbox
	both sync.WaitGroup // reader and writer
	idle sync.Pool      // of *waiter, for plain calls
}

func dialStdio(c *Client) (*stdioLink, error) {
	p, err := startProcess(&c.cfg)
	if err != nil {
		return nil, &StartError{Class: Startup, What: c.cfg.Redactor.Line("the command does not start: "+err.Error(), messageShown),
			Remedy: "check the name, the path and the permissions of the command", cause: err}
	}
	l := &stdioLink{p: p}
	l.out = newOutbox(p.stdin)
	l.mux = newMux(c, l.out.send)
	l.both.Go(l.read)
	l.both.Go(l.write)
	return l, nil
}

// write runs the writer, and tells the calls it could not serve. The end of the
// stream explains more than a broken pipe does, and gets a moment to come.
func (l *stdioLink) write() {
	begun, lost, err := l.out.run()
	if err == nil {
		return
	}
	select {
	case <-l.gone:
	case <-time.After(endGrace(err)):
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Now()
	for i, id := range append(begun, lost...) {
		if w := l.pending[id]; w != nil && w.plain {
			l.deliver(w, arrival{at: at, err: err, begun: i < len(begun)})
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
	_, err := l.mux.write(ctx, body)
	return err
}

func (l *stdioLink) close(context.Context) ShutdownReport {
	l.end(metrics.Cancelled, "the link was closed")
	report := l.p.shutDown(l.c.cfg.StopGrace)
	l.out.stop()
	l.both.Wait()
	l.wg.Wait()
	return report
}
