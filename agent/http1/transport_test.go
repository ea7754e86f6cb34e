package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The test binary started with ORDEAL_ORIGIN reaches it as the environment says.
func TestMain(m *testing.M) {
	origin := os.Getenv("ORDEAL_ORIGIN")
	if origin == "" {
		os.Exit(m.Run())
	}
	u, err := url.Parse(origin)
	if err != nil {
		panic(err)
	}
	t, err := NewTransport(Config{URL: u})
	if err != nil {
		panic(err)
	}
	resp, err := t.RoundTrip(&http.Request{Method: "GET", URL: u, Header: http.Header{}})
	if err != nil {
		panic(err)
	}
	all, err := io.ReadAll(resp.Body)
	fmt.Printf("%s %v direct=%v", all, err, t.Pool() != nil)
	os.Exit(0)
}

func TestProxyOfTheEnvironment(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "proxy for ", r.URL) }))
	defer proxy.Close()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "origin") }))
	defer origin.Close()
	tests := map[string]string{
		"http://ordeal.test/mcp": "proxy for http://ordeal.test/mcp <nil> direct=false",
		origin.URL:               "origin <nil> direct=true", // loopback is left out
	}
	for target, want := range tests {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ORDEAL_ORIGIN="+target, "HTTP_PROXY="+proxy.URL, "NO_PROXY=", "http_proxy=", "no_proxy=")
		if out, err := cmd.Output(); string(out) != want || err != nil {
			t.Errorf("%s: %q %v, want %q", target, out, err, want)
		}
	}
}

func transport(t *testing.T, origin string) *Transport {
	t.Helper()
	u, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := NewTransport(Config{URL: u, MaxIdle: 32, TLS: &tls.Config{InsecureSkipVerify: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// post makes one call without a way to rewind the body, as agent/mcp does.
func post(ctx context.Context, tr http.RoundTripper, target, body string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	r := &http.Request{Method: "POST", URL: u, Host: u.Host, Header: http.Header{"X-A": {"b"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
	resp, err := tr.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = errors.New(resp.Status)
	}
	return string(all), err
}

func TestRoundTrip(t *testing.T) {
	var conns sync.Map
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		body, _ := io.ReadAll(r.Body)
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.RequestURI, r.Header.Get("X-A"), body)
	}))
	defer s.Close()
	tr := transport(t, s.URL)
	for range 20 {
		got, err := post(t.Context(), tr, s.URL+"/a?b=c%2Fd", "hi")
		if want := "POST /a?b=c%2Fd b hi"; got != want || err != nil {
			t.Fatalf("%q %v, want %q", got, err, want)
		}
	}
	n := 0
	conns.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d connections for 20 calls, one after the other", n)
	}
	u, _ := url.Parse(s.URL)
	for _, bad := range []http.Header{{"X-A": {"b\r\nX-Evil: c"}}, {"X A": {"b"}}, {"": {"b"}}} {
		if resp, err := tr.RoundTrip((&http.Request{Method: "POST", URL: u, Header: bad}).WithContext(t.Context())); err == nil {
			resp.Body.Close()
			t.Errorf("header %q was sent", bad)
		}
	}
	resp, err := tr.RoundTrip((&http.Request{Method: "HEAD", URL: u, Header: http.Header{}}).WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(resp.Body); len(all) > 0 || err != nil || len(resp.Header["X-Two"]) != 2 {
		t.Errorf("HEAD: %q %v %v", all, err, resp.Header)
	}
}

// A body is given up by Close, also under a read, and by the end of its context.
func TestBodyIsGivenUp(t *testing.T) {
	f := listen(t, func(f *far, c net.Conn, in *bufio.Reader) {
		for f.request(in) != nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
		}
	})
	for name, giveUp := range map[string]func(b io.Closer, cancel func()){
		"close":  func(b io.Closer, _ func()) { b.Close() },
		"cancel": func(_ io.Closer, cancel func()) { cancel() },
	} {
		p := f.pool(t)
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := p.RoundTrip((&http.Request{Method: "GET", URL: p.cfg.URL, Header: http.Header{}}).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(20*time.Millisecond, func() { giveUp(resp.Body, cancel) })
		all, err := io.ReadAll(resp.Body)
		timer.Stop()
		if string(all) != "hello" || err == nil || name == "cancel" && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %q %v", name, all, err)
		}
		cancel()
		resp.Body.Close()
		if len(p.idle) != 0 {
			t.Errorf("%s: the connection of half an answer is used again", name)
		}
	}
	p := f.pool(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	resp, err := p.RoundTrip((&http.Request{Method: "GET", URL: p.cfg.URL, Header: http.Header{}}).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
}

// secure serves TLS with the given protocols.
func secure(t *testing.T, h http.HandlerFunc, h2 *http.HTTP2Config, protocols ...string) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = h2 != nil
	s.Config.HTTP2 = h2
	s.TLS = &tls.Config{NextProtos: protocols}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestTLS(t *testing.T) {
	proto := func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); fmt.Fprint(w, r.Proto) }
	tests := []struct {
		name   string
		h2     *http.HTTP2Config
		alpn   []string
		want   string
		direct bool
	}{
		{"HTTP/1.1", nil, []string{"http/1.1"}, "HTTP/1.1", true},
		{"HTTP/2", &http.HTTP2Config{}, nil, "HTTP/2.0", false},
	}
	for _, tc := range tests {
		s := secure(t, proto, tc.h2, tc.alpn...)
		tr := transport(t, s.URL)
		for range 20 {
			if got, err := post(t.Context(), tr, s.URL, "x"); got != tc.want || err != nil {
				t.Fatalf("%s: %q %v", tc.name, got, err)
			}
		}
		if direct := tr.Pool() != nil; direct != tc.direct || direct && tr.pool.Dialed() != 1 {
			t.Errorf("%s: direct %v, want %v; %d connections", tc.name, direct, tc.direct, tr.pool.Dialed())
		}
	}
	s := secure(t, proto, nil, "http/1.1")
	u, _ := url.Parse(s.URL)
	strict, err := NewTransport(Config{URL: u})
	if err != nil {
		t.Fatal(err)
	}
	var unknown *tls.CertificateVerificationError
	if _, err := post(t.Context(), strict, s.URL, "x"); !errors.As(err, &unknown) {
		t.Errorf("self-signed certificate: %v", err)
	}
}

// An HTTP/2 server that ends its connections every few answers, and one that allows
// one stream at a time: no call fails, and none is carried out twice.
func TestHTTP2(t *testing.T) {
	const callers, each = 8, 40
	var served, now, most atomic.Int64
	answer := func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		io.Copy(io.Discard, r.Body)
		if n := served.Add(1); n%10 == 0 && r.URL.Path == "/away" {
			w.Header().Set("Connection", "close") // net/http: GOAWAY
		}
		time.Sleep(100 * time.Microsecond)
		fmt.Fprint(w, r.Proto)
	}
	for path, h2 := range map[string]*http.HTTP2Config{"/away": {}, "/one": {MaxConcurrentStreams: 1}} {
		served.Store(0)
		most.Store(0)
		var conns atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(answer))
		s.EnableHTTP2, s.Config.HTTP2 = true, h2
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
		s.StartTLS()
		tr := transport(t, s.URL)
		ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range each {
					if got, err := post(ctx, tr, s.URL+path, "x"); got != "HTTP/2.0" || err != nil {
						t.Errorf("%s: %q %v", path, got, err)
						return
					}
				}
			})
		}
		wg.Wait()
		done()
		if served.Load() != callers*each {
			t.Errorf("%s: %d calls carried out, %d made", path, served.Load(), callers*each)
		}
		switch path {
		case "/away":
			if conns.Load() < 10 {
				t.Errorf("%d connections: the server did not end any", conns.Load())
			}
			t.Logf("GOAWAY: %d connections, %d requests sent anew", conns.Load(), tr.Recycled())
		case "/one":
			if most.Load() > callers {
				t.Errorf("%d calls at once of %d callers", most.Load(), callers)
			}
			t.Logf("one stream: %d connections, %d at once", conns.Load(), most.Load())
		}
		s.Close()
	}
}
