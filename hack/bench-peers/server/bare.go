package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"bench-peers/tape"
)

// The bare servers cost as little as one may without leaving net/http or a pipe, so
// that what is measured is the generator. They copy the id, since a client that
// checks its answers refuses another's.
const (
	answer      = `,"result":{"content":[{"type":"text","text":"Echo: hello"}]}}`
	initialized = `,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"1"}}}`
	listed      = `,"result":{"tools":[{"name":"echo","description":"says it again","annotations":{"readOnlyHint":true},` +
		`"inputSchema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}}]}}`
	pong    = `,"result":{}}`
	unknown = `,"error":{"code":-32601,"message":"method not found"}}`
)

var (
	idKey   = []byte(`"id":`)
	callKey = []byte(`"tools/call"`)
)

// reply appends the answer to a message; nothing for a notification.
func reply(out, message []byte, arrived func()) []byte {
	if bytes.Contains(message, callKey) {
		if id := rawID(message); id != nil {
			arrived()
			return closed(out, id, answer)
		}
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(message, &m) != nil || len(m.ID) == 0 {
		return out
	}
	switch m.Method {
	case "initialize":
		return closed(out, m.ID, initialized)
	case "tools/list":
		return closed(out, m.ID, listed)
	case "ping":
		return closed(out, m.ID, pong)
	}
	return closed(out, m.ID, unknown)
}

func closed(out, id []byte, rest string) []byte {
	out = append(out, `{"jsonrpc":"2.0","id":`...)
	out = append(out, id...)
	return append(out, rest...)
}

// rawID is the id of a call as it was written: a number, or a string without escapes.
func rawID(message []byte) []byte {
	_, rest, found := bytes.Cut(message, idKey)
	if !found {
		return nil
	}
	rest = bytes.TrimLeft(rest, " ")
	end := bytes.IndexAny(rest, ",}")
	if end <= 0 {
		return nil
	}
	return bytes.TrimRight(rest[:end], " ")
}

// window is a stretch of time after the first call.
type window struct{ at, length time.Duration }

// left is how much of the window is still to come so long after the first call; 0
// outside of it.
func (w window) left(since time.Duration) time.Duration {
	if since < w.at || since >= w.at+w.length {
		return 0
	}
	return w.at + w.length - since
}

type bare struct {
	calls *tape.Tape
	stall window
	pool  sync.Pool
}

// buffers are a request's: what it said and what it hears.
type buffers struct {
	in  bytes.Buffer
	out []byte
}

func (b *bare) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed) // no stream of its own, no session to end
		return
	}
	bufs, _ := b.pool.Get().(*buffers)
	if bufs == nil {
		bufs = new(buffers)
	}
	defer b.pool.Put(bufs)
	bufs.in.Reset()
	if _, err := bufs.in.ReadFrom(r.Body); err != nil {
		return
	}
	bufs.out = reply(bufs.out[:0], bufs.in.Bytes(), b.arrived)
	if len(bufs.out) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header()["Content-Type"] = jsonType
	w.Write(bufs.out) // a client that has gone is the client's business
}

var jsonType = []string{"application/json"}

// arrived counts a call, and holds it while the server stalls.
func (b *bare) arrived() {
	now := time.Now()
	first := b.calls.Arrive(now)
	if b.stall.length > 0 {
		time.Sleep(b.stall.left(time.Duration(now.UnixNano() - first)))
	}
}

// lines answers messages of one line each until its input ends, many with one write
// when they come together.
func lines(in io.Reader, out io.Writer, calls *tape.Tape) error {
	r, w := bufio.NewReaderSize(in, 1<<16), bufio.NewWriterSize(out, 1<<16)
	var said []byte
	arrived := func() { calls.Arrive(time.Now()) }
	for {
		line, err := r.ReadSlice('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if said = reply(said[:0], line, arrived); len(said) > 0 {
			w.Write(append(said, '\n')) // kept by the writer, which says it at Flush
		}
		if r.Buffered() > 0 {
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}
