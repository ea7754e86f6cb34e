package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"ordeal/agent/sse"
	"ordeal/metrics"
)

// MaxGaps of one stream are kept.
const MaxGaps = 4096

func isEvents(h http.Header) bool {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return media == "text/event-stream"
}

// isLines reports a type of one JSON text a line.
func isLines(h http.Header) bool {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	switch media {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/jsonlines", "application/json-seq", "application/stream+json":
		return true
	}
	return false
}

// event records one event of a stream.
func (f *flight) event(at time.Duration) {
	switch {
	case f.seen == 0:
		f.TTFT = at
	case len(f.Gaps) < MaxGaps:
		f.Gaps = append(f.Gaps, at-f.last)
	case f.seen == MaxGaps+1:
		f.note(fmt.Sprintf("only the first %d gaps are kept", MaxGaps))
	}
	f.seen++
	f.last = at
}

// events reads an event stream to its end.
func (f *flight) events(m *meter) {
	events := sse.NewReader(m, int(f.c.cfg.MaxAnswer))
	var text strings.Builder
	for {
		e, err := events.Next()
		if err != nil {
			f.streamEnded(m, err, text.String())
			return
		}
		if len(e.Data) == 0 {
			continue
		}
		f.event(f.trip.Arrived())
		if e.Type == "error" {
			f.Latency, f.Executed = f.trip.Elapsed(), metrics.Unknown
			f.conclude(metrics.ServerError, fmt.Sprintf("event of type error after %d events: %s", f.seen-1, e.Data))
			f.drain(m)
			return
		}
		if f.keep {
			text.Write(e.Data)
			text.WriteByte('\n')
		}
	}
}

// streamEnded judges how an event stream ended.
func (f *flight) streamEnded(m *meter, err error, text string) {
	switch {
	case errors.Is(err, sse.ErrTooLarge):
		f.broken(errTooLarge)
	case !errors.Is(m.last, io.EOF):
		f.broken(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.invalid("the stream ended in the middle of an event")
		f.Truncated = true
	case f.seen == 0:
		f.invalid("the stream ended")
		f.Truncated = true
	default:
		f.ok(f.trip.Elapsed())
		if f.keep {
			f.said(strings.TrimSuffix(text, "\n"))
		}
	}
}

// lines reads a stream of lines to its end.
func (f *flight) lines(m *meter) {
	var text strings.Builder
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	open := false
	for {
		n, err := m.Read(buf[:])
		open = f.countLines(buf[:n], f.trip.Arrived(), open)
		if f.keep {
			text.Write(buf[:n])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.broken(err)
			return
		}
	}
	if open { // the last line needs no end
		f.event(f.trip.Arrived())
	}
	if f.seen == 0 {
		f.invalid("the stream ended")
		f.Truncated = true
		return
	}
	f.ok(f.trip.Elapsed())
	if f.keep {
		f.said(text.String())
	}
}

// countLines books the lines that end in a piece of a stream. Empty ones keep it
// alive and are no events. open says whether a line has begun before the piece, and
// at its end.
func (f *flight) countLines(piece []byte, at time.Duration, open bool) bool {
	for len(piece) > 0 {
		line, rest, ended := bytes.Cut(piece, []byte{'\n'})
		open = open || len(bytes.TrimSpace(line)) > 0
		if ended && open {
			f.event(at)
			open = false
		}
		piece = rest
	}
	return open
}
