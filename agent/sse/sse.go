// Package sse reads server-sent events from a byte stream.
//
// In go bytes in any chunking; out come events in order, with the rules of the
// WHATWG event stream format: a leading BOM, LF, CR and CRLF line ends,
// comments, several data lines, id, retry, a missing space after the colon. An
// event larger than the reader's bound is an error. Nothing here reconnects,
// decodes JSON, or waits for a byte it does not need: an event is returned as
// soon as its blank line has arrived.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// DefaultMax bounds the bytes of one event when the caller names no bound.
const DefaultMax = 64 << 20

// maxStray bounds what Stray keeps of a foreign line.
const maxStray = 4 << 10

// ErrTooLarge reports an event, or a line, above the reader's bound. The
// stream cannot be continued after it.
var ErrTooLarge = errors.New("sse: event too large")

// Event is one dispatched event.
type Event struct {
	Type string // "message" unless the stream named another
	ID   string // last id of the stream up to here, which an event inherits
	Data []byte // data lines joined by LF; valid until the next call of Next
}

// Reader yields the events of one stream. It is not safe for concurrent use.
type Reader struct {
	src io.Reader
	max int

	buf     []byte // bytes buf[lo:hi] are unread
	lo, hi  int
	scanned int   // bytes after lo known to hold no line end
	skipLF  bool  // the last line ended in CR: a following LF belongs to it
	begun   bool  // the place of a BOM is behind us
	err     error // of src, delivered when the buffer is used up

	data     []byte
	hasData  bool
	kind     string
	id       string
	retry    time.Duration
	comments int
	stray    []byte
}

// NewReader reads from src; max bounds the bytes of one event, 0 means
// DefaultMax.
func NewReader(src io.Reader, max int) *Reader {
	if max <= 0 {
		max = DefaultMax
	}
	return &Reader{src: src, max: max}
}

// Next returns the next event. At the end of the stream it returns io.EOF, or
// io.ErrUnexpectedEOF when the end cut an event in two (see Partial); an error
// of the source comes back as it is.
func (r *Reader) Next() (Event, error) {
	r.data, r.hasData, r.kind = r.data[:0], false, ""
	for {
		line, err := r.line()
		if err != nil {
			return Event{}, r.end(line, err)
		}
		if len(line) > 0 {
			if err := r.field(line); err != nil {
				return Event{}, err
			}
			continue
		}
		if r.hasData {
			return r.event(), nil
		}
		r.kind = "" // a block without data is no event, but its id stays
	}
}

// LastID is the latest id of the stream, for Last-Event-ID.
func (r *Reader) LastID() string { return r.id }

// Retry is the latest reconnection delay the stream asked for; 0 none.
func (r *Reader) Retry() time.Duration { return r.retry }

// Comments counts comment lines, which servers send to keep a stream alive.
func (r *Reader) Comments() int { return r.comments }

// Stray is the first line that is no field of the format, at most 4 KiB of it;
// nil for none. A server that writes a bare JSON error into an open stream
// shows up here.
func (r *Reader) Stray() []byte { return r.stray }

// Partial is the event the end of the stream cut, without its blank line. The
// format discards it; ok is false when there was none.
func (r *Reader) Partial() (e Event, ok bool) {
	if r.err == nil || !r.hasData {
		return Event{}, false
	}
	return r.event(), true
}

func (r *Reader) event() Event {
	e := Event{Type: r.kind, ID: r.id, Data: r.data}
	if e.Type == "" {
		e.Type = "message"
	}
	return e
}

// end takes the unterminated last line into account.
func (r *Reader) end(rest []byte, err error) error {
	if len(rest) > 0 && errors.Is(err, io.EOF) {
		if ferr := r.field(rest); ferr != nil {
			return ferr
		}
	}
	if errors.Is(err, io.EOF) && (r.hasData || len(rest) > 0) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *Reader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "":
		r.comments++
	case "data":
		return r.appendData(value)
	case "event":
		r.kind = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id = string(value)
		}
	case "retry":
		r.setRetry(value)
	default:
		if r.stray == nil {
			r.stray = bytes.Clone(line[:min(len(line), maxStray)])
		}
	}
	return nil
}

func (r *Reader) appendData(value []byte) error {
	if len(r.data)+len(value)+1 > r.max {
		return fmt.Errorf("%w: more than %d bytes of data", ErrTooLarge, r.max)
	}
	if r.hasData {
		r.data = append(r.data, '\n')
	}
	r.data = append(r.data, value...)
	r.hasData = true
	return nil
}

// setRetry accepts digits only, as the format says, and keeps a delay that
// would overflow at an hour.
func (r *Reader) setRetry(value []byte) {
	if len(value) == 0 {
		return
	}
	var ms int64
	for _, c := range value {
		if c < '0' || c > '9' {
			return
		}
		ms = min(ms*10+int64(c-'0'), time.Hour.Milliseconds())
	}
	r.retry = time.Duration(ms) * time.Millisecond
}
