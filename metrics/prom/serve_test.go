package prom

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestEndpoints(t *testing.T) {
	a, c := calledOnce()
	var down atomic.Pointer[error]
	s := start(t, Options{Version: "0.1.0", Ready: func() error {
		if err := down.Load(); err != nil {
			return *err
		}
		return nil
	}}, a, c)
	plain := func(path string, status int, want string) {
		t.Helper()
		body, header := get(t, s, path, "", status)
		if body != want+"\n" || header.Get("Content-Type") != "text/plain; charset=utf-8" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %q, want %q, header %v", path, body, want, header)
		}
	}
	plain("/healthz", http.StatusOK, "ok")
	plain("/readyz", http.StatusOK, "ready")
	err := errors.New("dial nats://agent:hunter2@10.0.0.7:4222:\n\tconnection refused\x00")
	down.Store(&err)
	plain("/readyz", http.StatusServiceUnavailable, "not ready: dial nats://redacted@10.0.0.7:4222: connection refused")
	plain("/healthz", http.StatusOK, "ok")
	down.Store(nil)
	plain("/readyz", http.StatusOK, "ready")
	get(t, s, "/", "", http.StatusNotFound)
	get(t, s, "/debug/pprof/", "", http.StatusNotFound)
	res, err := http.Post("http://"+s.Addr()+"/metrics", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics: %d", res.StatusCode)
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "",
		" a\r\n b ":                            "a b",
		"x://u:p@h and y://h/p, z://a/b@c:d@e": "x://redacted@h and y://h/p, z://redacted@e",
		strings.Repeat("ä", 300):               strings.Repeat("ä", 199) + "…",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestForms: each form that a scraper asks for is served, and all of them have
// the same series.
func TestForms(t *testing.T) {
	a, c := calledOnce()
	s := start(t, Options{}, a, c)
	for accept, want := range map[string]string{
		"":            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		acceptText:    "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		acceptMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
		acceptProto:   "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores",
	} {
		body, header := get(t, s, "/metrics", accept, http.StatusOK)
		if got := header.Get("Content-Type"); got != want {
			t.Errorf("%q: got %q, want %q", accept, got, want)
		}
		if strings.Contains(want, "openmetrics") && !strings.HasSuffix(body, "\n# EOF\n") {
			t.Errorf("an OpenMetrics answer ends %q", body[max(0, len(body)-20):])
		}
		for _, name := range []string{"ordeal_agent_operations", "ordeal_operation_duration_seconds", "ordeal_run_info", "ordeal_build_info", "go_goroutines", "process_start_time_seconds"} {
			if !strings.Contains(body, name) {
				t.Errorf("%q: no %s", accept, name)
			}
		}
	}
}

// TestAddressTaken: an address in use is an error at the start that names the
// flag and says nothing twice.
func TestAddressTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for addr, want := range map[string]string{
		l.Addr().String(): fmt.Sprintf("--metrics-addr %s: address already in use", l.Addr()),
		"127.0.0.1":       "--metrics-addr 127.0.0.1: address 127.0.0.1: missing port in address",
	} {
		s, err := Serve(t.Context(), Options{Addr: addr})
		if err == nil || err.Error() != want || s.Stop() != nil {
			t.Errorf("%s: got %v, want %s", addr, err, want)
		}
	}
}

// TestEndOfContext: the end of the context ends the server and frees the
// address; Stop afterwards, and again, only says so.
func TestEndOfContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Serve(ctx, Options{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	get(t, s, "/healthz", "", http.StatusOK)
	cancel()
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	l, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatalf("the address is still taken: %v", err)
	}
	l.Close()
}

// TestStopWaits: an answer under way is finished before the server has stopped,
// while nobody gets in any more.
func TestStopWaits(t *testing.T) {
	var s *Server
	serving, stopped := make(chan struct{}), make(chan error, 1)
	ready := func() error {
		<-serving
		go func() { stopped <- s.Stop() }()
		for {
			c, err := net.Dial("tcp", s.Addr())
			if err != nil {
				return nil // the end has begun
			}
			c.Close()
		}
	}
	s = start(t, Options{Ready: ready})
	close(serving)
	if body, _ := get(t, s, "/readyz", "", http.StatusOK); body != "ready\n" {
		t.Errorf("got %q", body)
	}
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody asked whether it is ready, or the end does not come")
	}
}

// deaf is a listener of one connection, which the far end never reads.
type deaf struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (d deaf) Accept() (net.Conn, error) {
	select {
	case c := <-d.conn:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}
func (d deaf) Close() error   { close(d.closed); return nil }
func (d deaf) Addr() net.Addr { return &net.TCPAddr{} }

// TestDeafScraper: a scraper that does not read its answer holds up the end of
// the server for shutdownWait and no longer.
func TestDeafScraper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		near, far := net.Pipe()
		l := deaf{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conn <- near
		ended := make(chan error, 1)
		a, _ := calledOnce()
		go func() { ended <- serve(ctx, &http.Server{Handler: handler(Options{}, []Source{a})}, l) }()
		if _, err := far.Write([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReaderSize(far, 16).ReadByte(); err != nil { // the answer has begun
			t.Fatal(err)
		}
		begun := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != shutdownWait {
			t.Errorf("took %v, want %v", took, shutdownWait)
		}
		if rest, err := io.ReadAll(far); err != nil || len(rest) > 0 {
			t.Errorf("%d bytes more, err %v: the connection was left open", len(rest), err)
		}
	})
}

// TestBroken: a server whose listener fails says so when it is stopped.
func TestBroken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	err = serve(t.Context(), &http.Server{}, l)
	if want := fmt.Sprintf("serve metrics on %[1]s: accept tcp %[1]s: use of closed network connection", l.Addr()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
