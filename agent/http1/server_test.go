package http1

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// far is the other end: each connection is one call of play, with what it is about
// to read.
type far struct {
	net.Listener
	requests atomic.Int64
	wg       sync.WaitGroup
}

func listen(t testing.TB, play func(f *far, c net.Conn, in *bufio.Reader)) *far {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &far{Listener: l}
	var mu sync.Mutex
	var open []net.Conn
	f.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			f.wg.Go(func() {
				defer c.Close()
				play(f, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		f.wg.Wait()
	})
	return f
}

// request reads one request whole; nil at the end.
func (f *far) request(in *bufio.Reader) *http.Request {
	r, err := http.ReadRequest(in)
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil
	}
	f.requests.Add(1)
	return r
}

// always answers each request the same way.
func always(answer string) func(*far, net.Conn, *bufio.Reader) {
	return func(f *far, c net.Conn, in *bufio.Reader) {
		for f.request(in) != nil {
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	}
}

const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

func (f *far) pool(t testing.TB, change ...func(*Config)) *Pool {
	t.Helper()
	cfg := Config{URL: &url.URL{Scheme: "http", Host: f.Addr().String(), Path: "/"}}
	for _, c := range change {
		c(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// ask makes one call by hand, the way the load path does.
func ask(ctx context.Context, p *Pool, limit time.Duration) (status int, body string, err error) {
	start := time.Now()
	for {
		c, err := p.Take(ctx, start, start.Add(limit))
		if err != nil {
			return 0, "", err
		}
		head, err := AppendHead(c.Buffer(), "POST", p.cfg.URL, p.cfg.URL.Host, nil)
		if err != nil {
			return 0, "", err
		}
		unsent, err := c.Send(append(AppendLength(head, 2), "{}"...))
		if unsent {
			c.Discard()
			continue
		}
		var h *Head
		if err == nil {
			h, err = c.Head()
		}
		for err == nil && !c.Complete() {
			if err = c.More(); err == io.EOF {
				err = nil
			}
		}
		if err != nil {
			c.Discard()
			return 0, "", c.Fail(ctx, err)
		}
		status, body = h.Status, string(c.Body())
		c.Release(time.Now())
		return status, body, nil
	}
}
