package llmtest

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// frame is one server-sent event of an answer.
type frame struct {
	event string // empty on the OpenAI wire
	data  string
	token bool // carries generated content
	stop  bool // carries the reason why the generation ended
}

// stream plays the frames of an answer, and the planned fault among them.
func (x *exchange) stream() {
	frames := x.frames()
	x.head("text/event-stream")
	if x.answer.LateStart && !x.wait(x.answer.TTFT) {
		return
	}
	x.w.WriteHeader(x.status())
	x.flush()
	x.server.stamp(func() { x.entry.Headers = time.Now() })
	for i, f := range frames {
		if x.breaksBefore(f, i == len(frames)-1) {
			return
		}
		if !x.send(f) {
			return
		}
	}
	if x.answer.Fault == LateExtra {
		<-x.gone
	}
}

func (x *exchange) frames() []frame {
	frames := x.openaiFrames()
	if x.entry.Wire == Anthropic {
		frames = x.anthropicFrames()
	}
	kept := frames[:0]
	for i, f := range frames {
		last := i == len(frames)-1
		switch {
		case x.answer.Fault == NoMarker && last:
		case x.answer.Fault == NoFinish && f.stop:
		case x.answer.Fault == EmptyChoice && (f.token || f.stop):
		default:
			kept = append(kept, f)
		}
	}
	return kept
}

// breaksBefore plays a fault that is due before f goes out; true ends the answer.
func (x *exchange) breaksBefore(f frame, last bool) bool {
	if x.answer.Fault == HalfMarker {
		if last {
			encoded := encode(f)
			x.write(encoded[:len(encoded)-len("\n\n")-3])
		}
		return last
	}
	if x.tokens < x.answer.After || !(f.token || last) {
		return false
	}
	return x.breakNow()
}

// breakNow plays the faults that end a stream in its middle.
func (x *exchange) breakNow() bool {
	switch x.answer.Fault {
	case ErrorEvent:
		x.write(x.errorEvent())
	case BareError:
		x.write(append(errorBody(x.entry.Wire, x.midError(), x.requestID()), '\n'))
	case Reset:
		x.reset()
	case ChunkCut:
		panic(http.ErrAbortHandler)
	case CleanCut:
	case HalfEvent:
		x.write([]byte(`data: {"id":"chatcmpl-cut","choices":[{"index":0,"del`))
	case BadJSON:
		x.write([]byte("data: {\"choices\":[{\"delta\": nope\n\n"))
		return false
	case Stall:
		<-x.gone
	case PingStall:
		x.pings()
	default:
		return false
	}
	return true
}

func (x *exchange) pings() {
	ping := ": keep-alive\n\n"
	if x.entry.Wire == Anthropic {
		ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	}
	for x.wait(max(x.answer.Gap, time.Millisecond)) {
		x.write([]byte(ping))
	}
}

func (x *exchange) midError() APIError {
	if x.answer.Error != nil {
		return *x.answer.Error
	}
	return defaultError(x.entry.Wire, http.StatusInternalServerError)
}

func (x *exchange) errorEvent() []byte {
	body := string(errorBody(x.entry.Wire, x.midError(), x.requestID()))
	if x.entry.Wire == Anthropic {
		return encode(frame{event: "error", data: body})
	}
	return append(encode(frame{data: body}), encode(frame{data: "[DONE]"})...)
}

// send paces, writes and stamps one frame; false means that the client left.
func (x *exchange) send(f frame) bool {
	if !f.token {
		return x.write(x.dressed(f))
	}
	pause := x.answer.Gap
	if x.tokens == 0 {
		pause = x.answer.TTFT
		if x.answer.LateStart {
			pause = 0
		}
	}
	if !x.wait(pause) {
		return false
	}
	before := time.Now()
	if !x.write(x.dressed(f)) {
		return false
	}
	after := time.Now()
	x.tokens++
	x.server.stamp(func() { x.entry.Tokens = append(x.entry.Tokens, Sent{before, after}) })
	return true
}

// write sends data at once; false means that the client left.
func (x *exchange) write(data []byte) bool {
	_, err := x.w.Write(data)
	return err == nil && x.flush() == nil
}

// dressed encodes a frame as the fault at hand wants it to look.
func (x *exchange) dressed(f frame) []byte {
	data := encode(f)
	switch {
	case x.answer.Fault == Duplicate && f.token:
		return append(data, data...)
	case x.answer.Fault == Noise:
		return noisy(f)
	case x.answer.Fault == NoData:
		return append([]byte("event: empty\n\n"), data...)
	}
	return data
}

func encode(f frame) []byte {
	var b bytes.Buffer
	if f.event != "" {
		b.WriteString("event: " + f.event + "\n")
	}
	b.WriteString("data: " + f.data + "\n\n")
	return b.Bytes()
}

// noisy writes a frame with what the event-stream format allows: CRLF, comments,
// no space after the colon, unknown fields, data over two lines (a JSON text may
// be broken between any two tokens; here behind the first brace).
func noisy(f frame) []byte {
	var b strings.Builder
	b.WriteString(": comment\r\nretry: 3000\r\nid:7\r\nx-unknown: 1\r\n")
	if f.event != "" {
		b.WriteString("event:" + f.event + "\r\n")
	}
	if rest, ok := strings.CutPrefix(f.data, "{"); ok {
		b.WriteString("data:{\r\ndata:" + rest + "\r\n\r\n")
	} else {
		b.WriteString("data:" + f.data + "\r\n\r\n")
	}
	return []byte(b.String())
}
