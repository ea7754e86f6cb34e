package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"ordeal/metrics"
)

// receive takes one message off the stream. data may be reused after it returns
// when owned is false.
func (m *mux) receive(data []byte, owned bool) {
	at := time.Now()
	id, good := classify(data, m.c.era().modern())
	m.mu.Lock()
	m.lines++
	if w := m.pending[id]; good && w != nil && w.plain {
		m.deliver(w, arrival{good: true, at: at, bytes: len(data)})
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	msg, err := parseMessage(data)
	switch {
	case err == nil && msg.foreign():
		m.unreadable(data, at)
	case err == nil:
		if !owned && msg.method == nil {
			msg = msg.rebase(data, bytes.Clone(data))
		}
		m.dispatch(msg, at, len(data))
	case errors.Is(err, errBatch):
		if m.c.era().version != "2025-03-26" {
			m.c.find.add("a batch, which this revision does not know", "")
		}
		for _, msg := range parseBatch(bytes.Clone(data)) {
			m.dispatch(msg, at, len(data))
		}
	default:
		m.unreadable(data, at)
	}
}

func (m *mux) dispatch(msg message, at time.Time, size int) {
	switch {
	case msg.isRequest():
		m.answer(msg)
	case msg.isNotification():
		m.notified(msg)
	default:
		m.reply(msg, at, size)
	}
}

func (m *mux) reply(msg message, at time.Time, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, exact, ok := numericID(msg.id); ok {
		w := m.pending[n]
		switch {
		case w != nil && exact:
			m.deliver(w, arrival{msg: msg, at: at, bytes: size})
		case w != nil:
			m.deliver(w, arrival{at: at, bytes: size, failed: true, outcome: metrics.ProtocolError, text: retyped(msg.id)})
		default:
			m.unmatched(n)
		}
		return
	}
	if len(m.pending) != 1 {
		m.c.find.add("reply without a usable id", "id "+idType(msg.id))
		return
	}
	for _, w := range m.pending { // the only one
		if msg.fault != nil && !isNull(msg.fault) {
			m.deliver(w, arrival{msg: msg, at: at, bytes: size})
			return
		}
		text := "reply without a usable id (" + idType(msg.id) + ") while this call alone was in flight"
		m.deliver(w, arrival{at: at, bytes: size, failed: true, outcome: metrics.ProtocolError, text: text})
	}
}

// unmatched explains a reply nobody waits for. Callers hold mu.
func (m *mux) unmatched(id int64) {
	if _, late := m.abandoned[id]; late {
		delete(m.abandoned, id)
		m.c.find.add("reply after the call was given up", "")
	} else if id <= m.highest && id > 0 {
		m.c.find.add("second reply to one request", "id "+strconv.FormatInt(id, 10))
	} else {
		m.c.find.add("reply with an id that was never sent", "id "+strconv.FormatInt(id, 10))
	}
}

// deliver hands an arrival to its waiter. Callers hold mu.
func (m *mux) deliver(w *waiter, a arrival) {
	delete(m.pending, w.call.id)
	w.arrive <- a
}

var idInFrame = regexp.MustCompile(`"id"\s*:\s*"?(\d{1,18})`)

// unreadable books a line that is no message. A line that begins like one is a
// damaged frame: the calls whose ids it holds fail at once. Any other line is
// noise, which costs nobody a call.
func (m *mux) unreadable(data []byte, at time.Time) {
	line := bytes.TrimSpace(data)
	if len(line) == 0 {
		m.c.find.add("empty line in the stream", "")
		return
	}
	sample := m.c.cfg.Redactor.Line(string(line[:min(len(line), 4<<10)]), sampleShown)
	m.mu.Lock()
	defer m.mu.Unlock()
	if line[0] == '{' && bytes.Contains(line, []byte(`"jsonrpc"`)) {
		m.c.find.add("damaged frame in the stream", sample)
		for _, id := range idInFrame.FindAllSubmatch(line, 16) {
			n, _ := strconv.ParseInt(string(id[1]), 10, 64) // at most 18 digits
			if w := m.pending[n]; w != nil {
				m.deliver(w, arrival{at: at, bytes: len(data), failed: true, outcome: metrics.InvalidResponse, text: "damaged frame: " + sample})
			}
		}
		return
	}
	if at := bytes.Index(line, []byte(`{"jsonrpc"`)); at > 0 {
		m.c.find.add(fmt.Sprintf("line %d held JSON after %d bytes of text", m.lines, at), sample)
	} else {
		m.c.find.add("line that is no JSON-RPC message", sample)
	}
	for _, w := range m.pending {
		if w.noise++; w.noise == 1 {
			w.sample = sample
		}
	}
}

// sole returns the call in flight if it is the only one: what the server asks
// and tells meanwhile is put down to it. Callers hold mu.
func (m *mux) sole() *call {
	if len(m.pending) == 1 {
		for _, w := range m.pending {
			return w.call
		}
	}
	return nil
}

func (m *mux) notified(msg message) {
	if string(msg.method) != `"notifications/progress"` {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	owner := m.sole()
	if n, ok := tokenOf(msg.params); ok && m.pending[n] != nil {
		owner = m.pending[n].call
	} else if ok && n <= m.highest && (owner == nil || m.c.cfg.Progress) {
		m.c.find.add("progress after the reply", "")
		return
	}
	if owner == nil {
		m.c.find.add("progress for no call in flight", "")
		return
	}
	owner.steps.see(owner.id, msg.params)
}

func tokenOf(params []byte) (id int64, ok bool) {
	if len(params) == 0 || params[0] != '{' {
		return 0, false
	}
	members(params, func(key string, value []byte) {
		if key == "progressToken" {
			id, _, ok = numericID(value)
		}
	})
	return id, ok
}

// answer replies to a request of the server beside the reader, which must go on
// reading: a server that does not read before it has written would stall both.
func (m *mux) answer(msg message) {
	method := msg.name()
	if m.c.era().modern() {
		m.c.find.add("request from the server, which this revision forbids", method)
	}
	select {
	case m.answering <- struct{}{}:
	default:
		m.c.find.add("more requests from the server than can be answered", method)
		return
	}
	m.mu.Lock()
	stop := func() {}
	if owner := m.sole(); owner != nil {
		stop = owner.answers.start()
	}
	m.mu.Unlock()
	body := reply(msg.id, method)
	m.wg.Go(func() {
		defer func() { <-m.answering }()
		defer stop()
		ctx, done := context.WithTimeout(context.Background(), m.c.cfg.Timeout)
		defer done()
		if _, err := m.write(ctx, body); err != nil {
			m.c.find.add("request from the server could not be answered", method)
		}
	})
}

// reply is our answer to a server's request: we declared no capability, so all
// but ping is unknown to us.
func reply(id []byte, method string) []byte {
	body := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	if method == "ping" {
		return append(body, `,"result":{}}`...)
	}
	body = append(body, `,"error":{"code":-32601,"message":`...)
	body = appendString(body, "method not found: this client declared no such capability ("+method+")")
	return append(body, `}}`...)
}
