package web_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ordeal/agent/web"
	"ordeal/metrics"
)

// secured starts a server of HTTP/2 over TLS, with a certificate nobody knows.
func secured(t *testing.T, h http.Handler, streams int) (url string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// load makes calls from several callers at once, and returns how many connections
// were recycled. Every call has to succeed.
func load(t *testing.T, c *web.Client, callers, each int) (recycled int64) {
	t.Helper()
	var n atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				x := c.Do(context.Background(), nil, false)
				if x.Outcome != metrics.OK {
					t.Errorf("%v %s", x.Outcome, x.Message)
				}
				n.Add(int64(len(x.Notes)))
			}
		})
	}
	all.Wait()
	return n.Load()
}

func post(t *testing.T, url string) *web.Client {
	return dial(t, web.Config{Method: "POST", URL: url, Body: `{"a":1}`, Insecure: true}, nil)
}

// A front end that recycles its connections: GOAWAY after every fiftieth answer.
func TestGoAway(t *testing.T) {
	var requests atomic.Int64
	var mu sync.Mutex
	conns := map[string]bool{}
	url := secured(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("protocol %s", r.Proto)
		}
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		conns[r.RemoteAddr] = true
		mu.Unlock()
		if requests.Add(1)%50 == 0 {
			w.Header().Set("Connection", "close") // the server's way to ask for a GOAWAY
		}
	}), 0)
	load(t, post(t, url), 8, 50)
	if requests.Load() != 400 || len(conns) < 3 {
		t.Errorf("%d requests for 400 calls, over %d connections", requests.Load(), len(conns))
	}
}

// A server that takes one stream at a time: calls queue or take connections of
// their own, and none fails.
func TestOneStreamAtATime(t *testing.T) {
	var inside, most, requests atomic.Int64
	var mu sync.Mutex
	perConn := map[string]int{}
	url := secured(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		perConn[r.RemoteAddr]++
		if perConn[r.RemoteAddr] > 1 {
			t.Errorf("%d streams at once on a connection", perConn[r.RemoteAddr])
		}
		mu.Unlock()
		most.Store(max(most.Load(), inside.Add(1)))
		requests.Add(1)
		io.Copy(io.Discard, r.Body)
		inside.Add(-1)
		mu.Lock()
		perConn[r.RemoteAddr]--
		mu.Unlock()
	}), 1)
	load(t, post(t, url), 4, 25)
	if requests.Load() != 100 {
		t.Errorf("%d requests for 100 calls", requests.Load())
	}
}

func TestUnknownCertificate(t *testing.T) {
	url := secured(t, http.NotFoundHandler(), 0)
	c := dial(t, web.Config{Method: "GET", URL: url}, nil)
	got := c.Do(context.Background(), nil, false)
	if got.Outcome != metrics.Connection || got.Executed != metrics.No || !strings.HasPrefix(got.Message, "tls: ") || !strings.Contains(got.Message, "certificate") {
		t.Errorf("%v executed %v %q", got.Outcome, got.Executed, got.Message)
	}
}

// goAway is an HTTP/2 server of a few frames: each connection answers its first
// streams, says GOAWAY with the last of them, and never begins a later one.
type goAway struct {
	streams int
	served  atomic.Int64
	refused atomic.Int64
	conns   atomic.Int64
}

const (
	frameData, frameHeaders, frameSettings, framePing, frameGoAway = 0, 1, 4, 6, 7
	endStream, endHeaders, ack                                     = 1, 4, 1
)

func (g *goAway) start(t *testing.T) (url string) {
	t.Helper()
	borrowed := httptest.NewTLSServer(nil) // its certificate
	cfg := borrowed.TLS.Clone()
	borrowed.Close()
	cfg.NextProtos = []string{"h2"}
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	over, end := context.WithCancel(context.Background())
	t.Cleanup(func() { end(); l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			g.conns.Add(1)
			context.AfterFunc(over, func() { conn.Close() })
			all.Go(func() { defer conn.Close(); g.serve(conn) })
		}
	})
	return "https://" + l.Addr().String()
}

func frame(conn net.Conn, kind, flags byte, stream uint32, body string) {
	head := []byte{0, byte(len(body) >> 8), byte(len(body)), kind, flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[5:], stream)
	conn.Write(append(head, body...))
}

// serve reads frames until the client has gone, or everything it may expect is
// answered.
func (g *goAway) serve(conn net.Conn) {
	io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
	frame(conn, frameSettings, 0, 0, "")
	begun, answered := 0, 0
	last := uint32(0)
	for {
		var head [9]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		body := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case kind == frameSettings && flags&ack == 0:
			frame(conn, frameSettings, ack, 0, "")
		case kind == framePing && flags&ack == 0:
			frame(conn, framePing, ack, 0, string(body))
		case kind == frameHeaders && begun == g.streams:
			g.refused.Add(1)
		case kind == frameHeaders:
			begun, last = begun+1, stream
		}
		if (kind == frameHeaders || kind == frameData) && flags&endStream != 0 && stream <= last {
			g.served.Add(1)
			frame(conn, frameHeaders, endHeaders|endStream, stream, "\x88") // :status 200
			if answered++; answered == g.streams {
				frame(conn, frameGoAway, 0, 0, string(binary.BigEndian.AppendUint32(nil, last))+"\x00\x00\x00\x00")
			}
		}
	}
}

// Streams that the server never began go out again on another connection: no call
// fails, none is carried out twice, and each is counted.
func TestGoAwayRefusesTheRest(t *testing.T) {
	g := &goAway{streams: 100}
	recycled := load(t, post(t, g.start(t)), 8, 100)
	t.Logf("%d served over %d connections, %d never begun, %d recycled", g.served.Load(), g.conns.Load(), g.refused.Load(), recycled)
	if g.served.Load() != 800 || g.conns.Load() < 8 || recycled < g.refused.Load() || g.refused.Load() == 0 {
		t.Errorf("%d served over %d connections, %d never begun, %d recycled", g.served.Load(), g.conns.Load(), g.refused.Load(), recycled)
	}
}
