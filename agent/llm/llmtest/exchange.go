package llmtest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// exchange is one request while it is being answered.
type exchange struct {
	server *Server
	entry  *Entry
	answer Answer
	w      http.ResponseWriter
	gone   <-chan struct{} // the client has left
	tokens int             // sent so far
}

// run answers according to the plan.
func (x *exchange) run() {
	a := &x.answer
	if a.Status >= 400 {
		if !x.wait(a.TTFT) {
			return
		}
		bad := defaultError(x.entry.Wire, a.Status)
		if a.Error != nil {
			bad = *a.Error
		}
		x.fail(a.Status, bad)
		return
	}
	if x.instead() {
		return
	}
	if !x.entry.Stream || a.Fault == JSONBody {
		if x.wait(a.TTFT) {
			x.body("application/json", x.document())
		}
		return
	}
	x.stream()
}

// instead plays the faults that replace the whole answer.
func (x *exchange) instead() bool {
	switch x.answer.Fault {
	case HTML:
		x.body("text/html; charset=utf-8", []byte("<!doctype html><title>Sign in</title><p>Please accept the terms of this network."))
	case EmptyBody:
		x.body("text/event-stream", nil)
	case EmptyObject:
		x.body("application/json", []byte("{}"))
	case BadBody:
		document := x.document()
		x.body("application/json", document[:len(document)/2])
	case ShortBody:
		document := x.document()
		x.head("application/json")
		x.w.Header().Set("Content-Length", strconv.Itoa(len(document)))
		x.w.Write(document[:len(document)/2])
		x.flush()
		panic(http.ErrAbortHandler)
	case NoReply:
		x.reset()
	case Hang:
		<-x.gone
	default:
		return false
	}
	return true
}

// fail sends an error object with its status.
func (x *exchange) fail(status int, bad APIError) {
	x.answer.Status = status
	x.body("application/json", errorBody(x.entry.Wire, bad, x.requestID()))
}

// body sends a complete answer that is not a stream.
func (x *exchange) body(contentType string, data []byte) {
	x.head(contentType)
	x.w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	x.w.WriteHeader(x.status())
	x.w.Write(data)
}

func (x *exchange) head(contentType string) {
	h := x.w.Header()
	h.Set("Content-Type", contentType)
	if x.entry.Wire == Anthropic {
		h.Set("Request-Id", x.requestID())
	} else {
		h.Set("X-Request-Id", x.requestID())
	}
	for name, values := range x.answer.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
}

func (x *exchange) status() int {
	if x.answer.Status == 0 {
		return http.StatusOK
	}
	return x.answer.Status
}

func (x *exchange) requestID() string { return fmt.Sprintf("req_%06d", x.entry.N) }

// wait pauses for d; false means that the client left in the meantime.
func (x *exchange) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.gone:
		return false
	}
}

func (x *exchange) flush() error { return http.NewResponseController(x.w).Flush() }

// reset ends the connection with a TCP reset; what had been flushed is on its
// way and may or may not reach the client.
func (x *exchange) reset() {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// document is the whole completion as JSON.
func (x *exchange) document() []byte {
	if x.entry.Wire == Anthropic {
		return mustJSON(x.anthropicMessage())
	}
	return mustJSON(x.openaiCompletion())
}

// plannedText is the text as the request's token limit allows it.
func (x *exchange) plannedText() (text []string, stop Stop) {
	text, stop = x.answer.text(), x.answer.Stop
	if limit := x.entry.MaxTokens; limit > 0 && len(text) > limit {
		return text[:limit], StopLength
	}
	return text, stop
}

func (x *exchange) inputTokens() int64 {
	if x.answer.Input > 0 {
		return x.answer.Input
	}
	return max(1, int64(len(x.entry.Prompt)+3)/4)
}

func (x *exchange) outputTokens() int64 {
	if x.answer.Output > 0 {
		return x.answer.Output
	}
	text, _ := x.plannedText()
	n := len(text) + len(x.answer.Thinking)
	for _, tool := range x.answer.Tools {
		n += max(1, tool.Parts)
	}
	return int64(n)
}

func errorBody(wire Wire, e APIError, requestID string) []byte {
	if wire == Anthropic {
		return mustJSON(object{"type": "error", "error": object{"type": e.Type, "message": e.Message}, "request_id": requestID})
	}
	return mustJSON(object{"error": object{
		"message": e.Message, "type": e.Type, "param": orNull(e.Param), "code": orNull(e.Code)}})
}

type object = map[string]any

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// mustJSON encodes values made of maps, strings and numbers, which cannot fail.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// pieces cuts s into n parts of nearly equal length, never inside a character.
func pieces(s string, n int) []string {
	runes := []rune(s)
	n = max(1, min(n, len(runes)))
	parts := make([]string, n)
	for i := range parts {
		parts[i] = string(runes[len(runes)*i/n : len(runes)*(i+1)/n])
	}
	return parts
}
