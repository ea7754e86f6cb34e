package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ordeal/agent/mcp"
	"ordeal/metrics"
)

func TestStreamWithEverything(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": func(w http.ResponseWriter, _ *http.Request, m rpc) {
			w.Header().Set("Content-Type", "text/event-stream")
			flush := http.NewResponseController(w)
			io.WriteString(w, "\xef\xbb\xbf"+strings.Join([]string{"retry: 50", ": hi", "id: 1", "data:", "", "event: odd", "data: x", "",
				`data: {"jsonrpc":"2.0",`, `data: "method":"notifications/progress","params":{"progress":1}}`, "", ""}, end))
			flush.Flush()
			for range 5 {
				io.WriteString(w, ":"+end)
				flush.Flush()
				time.Sleep(40 * time.Millisecond)
			}
			for _, b := range []byte("data:" + strings.ReplaceAll(`{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"grüße 漢"}]}}`, "$ID", string(m.ID)) + end + end) {
				w.Write([]byte{b})
				flush.Flush()
			}
		}})
		x := say(t, dialWeb(t, f).session(t), "x")
		if x.Outcome != metrics.OK || x.Text != "grüße 漢" || x.Latency < 200*time.Millisecond || x.FirstByte > x.Latency/2 {
			t.Errorf("end %q: %+v", end, x)
		}
	}
}

func TestCommentsDoNotExtendTheLimit(t *testing.T) {
	f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": func(w http.ResponseWriter, r *http.Request, _ rpc) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			io.WriteString(w, ":\n")
			http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}})
	s := dialWeb(t, f, func(c *mcp.Config) { c.Timeout = 200 * time.Millisecond })
	x := say(t, s.session(t), "x")
	wantOutcome(t, "comments", x, metrics.Timeout, "")
	if x.Latency > time.Second {
		t.Errorf("latency %v", x.Latency)
	}
	s.Close(context.Background())
	if n := len(f.seen("POST", "notifications/cancelled")); n != 1 {
		t.Errorf("%d cancel notices", n)
	}
}

func TestResume(t *testing.T) {
	prime := func(w http.ResponseWriter, _ *http.Request, _ rpc) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "retry: 80\nid: a-1\ndata:\n\n")
	}
	var id string
	f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){
		"tools/call": func(w http.ResponseWriter, r *http.Request, m rpc) { id = string(m.ID); prime(w, r, m) },
		"GET": func(w http.ResponseWriter, r *http.Request, _ rpc) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: a-2\ndata: %s\n\n", strings.ReplaceAll(okReply, "$ID", id))
		}})
	s := dialWeb(t, f)
	x := say(t, s.session(t), "x")
	wantOutcome(t, "resumed", x, metrics.OK, "")
	wantNote(t, "resumed", x.Notes, "resumed")
	gets := f.seen("GET", "")
	if len(gets) != 1 || gets[0].Header.Get("Last-Event-Id") != "a-1" || x.Latency < 80*time.Millisecond {
		t.Errorf("resumptions %+v, latency %v", gets, x.Latency)
	}

	// A server that accepts every resumption and never delivers.
	f = serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": prime, "GET": prime})
	x = say(t, dialWeb(t, f).session(t), "x")
	wantOutcome(t, "livelock", x, metrics.Connection, "stream ended without a reply")
	if n := len(f.seen("GET", "")); n != 1 {
		t.Errorf("%d resumptions without progress", n)
	}
}

func TestServerRequestsOverHTTP(t *testing.T) {
	answers := make(chan rpc, 1)
	f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){
		"": func(w http.ResponseWriter, _ *http.Request, m rpc) { answers <- m; w.WriteHeader(202) },
		"tools/call": func(w http.ResponseWriter, _ *http.Request, m rpc) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":%q}\n\n", m.ID, m.Params.Arguments["text"])
			http.NewResponseController(w).Flush()
			got := <-answers
			said := "result " + string(got.Result)
			if got.Error != nil {
				said = fmt.Sprint("error ", got.Error.Code)
			}
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, text(said))
		}})
	session := dialWeb(t, f).session(t)
	for method, want := range map[string]string{"ping": "result {}", "sampling/createMessage": "error -32601"} {
		x := say(t, session, method)
		if x.Outcome != metrics.OK || x.Text != want || x.ClientTime <= 0 || x.ClientTime > x.Latency {
			t.Errorf("%s: %+v", method, x)
		}
	}
}

// A server that leaves its answer streams open costs each call next to nothing.
func TestStreamsLeftOpen(t *testing.T) {
	f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": func(w http.ResponseWriter, r *http.Request, m rpc) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, text("x"))
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}})
	s := dialWeb(t, f)
	session := s.session(t)
	began := time.Now()
	for range 50 {
		if x := say(t, session, "x"); x.Outcome != metrics.OK || x.Latency > 500*time.Millisecond {
			t.Fatalf("%v in %v", x.Outcome, x.Latency)
		}
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("50 calls took %v", took)
	}
	wantNote(t, "client", s.Notes(), "stay open after the reply")
}
