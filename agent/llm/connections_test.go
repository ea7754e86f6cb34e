package llm_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ordeal/agent/llm"
	"ordeal/agent/llm/llmtest"
	"ordeal/metrics"
)

// chats makes calls from several callers at once, and counts what became of them.
func chats(t *testing.T, c *llm.Client, callers, each int) (served, crossed, recycled int64) {
	t.Helper()
	var ok, lost, again atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for op := range uint64(each) {
				r := c.Chat(context.Background(), op)
				again.Add(int64(strings.Count(strings.Join(r.Notes, ";"), "it went out on another")))
				switch {
				case r.Outcome == metrics.OK:
					ok.Add(1)
				case r.Outcome == metrics.Connection && strings.Contains(r.Message, "as it was used again"):
					lost.Add(1)
				default:
					t.Errorf("%v %s", r.Outcome, r.Message)
				}
			}
		})
	}
	all.Wait()
	return ok.Load(), lost.Load(), again.Load()
}

// A server that closes every connection just behind its answer, as the next prompt
// goes out: no model call is made twice, and none fails unless the close has
// really crossed it.
func TestClosedAtTheMomentOfReuse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	var all sync.WaitGroup
	defer all.Wait()
	defer l.Close()
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				io.Copy(io.Discard, req.Body)
				requests.Add(1)
				const stream = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(stream), stream)
			})
		}
	})
	c, err := llm.New(llm.Config{Wire: llm.OpenAI, Base: "http://" + l.Addr().String(), Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	served, crossed, recycled := chats(t, c, 4, 100)
	t.Logf("400 calls: %d served, %d crossed, %d recycled, %d requests seen", served, crossed, recycled, requests.Load())
	if served != requests.Load() || crossed > 40 {
		t.Errorf("%d served, %d requests seen, %d crossed", served, requests.Load(), crossed)
	}
}

// secured is a provider behind a front end of HTTP/2, with a certificate nobody
// knows: it takes some streams at once, and after every tenth answer says GOAWAY.
func secured(t *testing.T, streams int, goAway bool) (base string, requests *atomic.Int64, conns *sync.Map) {
	t.Helper()
	requests, conns = new(atomic.Int64), new(sync.Map)
	inner := llmtest.NewHandler(llmtest.Always(llmtest.Answer{Text: llmtest.Tokens(5)}))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("protocol %s", r.Proto)
		}
		conns.Store(r.RemoteAddr, true)
		if n := requests.Add(1); goAway && n%10 == 0 {
			w.Header().Set("Connection", "close") // the server's way to ask for a GOAWAY
		}
		inner.ServeHTTP(w, r)
	}))
	s.EnableHTTP2 = true
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL + "/v1", requests, conns
}

func TestHTTP2FrontEnds(t *testing.T) {
	rows := []struct {
		name    string
		streams int
		goAway  bool
		conns   int // at least
	}{
		{"GoAway", 0, true, 3},
		{"OneStreamAtATime", 1, false, 1},
		{"Both", 1, true, 3},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			base, requests, conns := secured(t, r.streams, r.goAway)
			c, err := llm.New(llm.Config{Wire: llm.OpenAI, Base: base, Model: "m", Insecure: true})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			served, crossed, _ := chats(t, c, 6, 15)
			n := 0
			conns.Range(func(any, any) bool { n++; return true })
			if served != 90 || crossed != 0 || requests.Load() != 90 || n < r.conns {
				t.Errorf("%d of 90 served, %d crossed, %d requests over %d connections", served, crossed, requests.Load(), n)
			}
		})
	}
}
