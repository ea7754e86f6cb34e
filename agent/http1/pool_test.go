package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestOneConnectionServesManyCalls(t *testing.T) {
	f := listen(t, always(hello))
	p := f.pool(t)
	const calls = 65_535
	for i := range calls {
		if status, body, err := ask(t.Context(), p, time.Minute); status != 200 || body != "hello" || err != nil {
			t.Fatalf("call %d: %d %q %v", i, status, body, err)
		}
	}
	if p.Dialed() != 1 || f.requests.Load() != calls || p.Recycled() != 0 {
		t.Errorf("%d connections, %d requests, %d recycled; want 1, %d, 0", p.Dialed(), f.requests.Load(), p.Recycled(), calls)
	}
}

func TestConnectionsAreOneCallsAtATime(t *testing.T) {
	f := listen(t, func(f *far, c net.Conn, in *bufio.Reader) {
		for {
			r := f.request(in)
			if r == nil {
				return
			}
			if in.Buffered() > 0 {
				io.WriteString(c, "HTTP/1.1 500 Two at once\r\n\r\n")
				return
			}
			io.WriteString(c, hello)
		}
	})
	p := f.pool(t, func(c *Config) { c.MaxIdle = 8 })
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 200 {
				if status, body, err := ask(t.Context(), p, time.Minute); status != 200 || body != "hello" || err != nil {
					t.Errorf("%d %q %v", status, body, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if len(p.idle) > 8 {
		t.Errorf("%d idle connections kept, want at most 8", len(p.idle))
	}
}

// A server that closes every connection once it idles: no call fails, none is made
// twice, and each close is counted.
func TestClosedWhileIdle(t *testing.T) {
	closed := make(chan struct{}, 100)
	f := listen(t, func(f *far, c net.Conn, in *bufio.Reader) {
		if f.request(in) != nil {
			io.WriteString(c, hello)
			c.Close()
			closed <- struct{}{}
		}
	})
	p := f.pool(t)
	const calls = 50
	for i := range calls {
		if status, _, err := ask(t.Context(), p, time.Minute); status != 200 || err != nil {
			t.Fatalf("call %d: %d %v", i, status, err)
		}
		<-closed
		time.Sleep(checkAfter + time.Millisecond) // it idles
	}
	if f.requests.Load() != calls || p.Recycled() != calls-1 || p.Dialed() != calls {
		t.Errorf("%d requests, %d recycled, %d connections; want %d, %d, %d", f.requests.Load(), p.Recycled(), p.Dialed(), calls, calls-1, calls)
	}
}

// What an idle connection says unasked belongs to no call.
func TestUnaskedAnswer(t *testing.T) {
	said := make(chan struct{}, 1)
	f := listen(t, func(f *far, c net.Conn, in *bufio.Reader) {
		f.request(in)
		io.WriteString(c, hello)
		time.Sleep(time.Millisecond)
		io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
		said <- struct{}{}
		f.request(in)
	})
	p := f.pool(t)
	for i := range 3 {
		if status, _, err := ask(t.Context(), p, time.Minute); status != 200 || err != nil {
			t.Fatalf("call %d: %d %v", i, status, err)
		}
		<-said
		time.Sleep(checkAfter + time.Millisecond)
	}
	if p.Recycled() != 2 {
		t.Errorf("%d recycled, want 2", p.Recycled())
	}
}

// A server that takes the second request of a connection and closes: it may have
// carried it out, so the call fails, says why, and is not made again.
func TestClosedUnderTheRequest(t *testing.T) {
	for _, reset := range []bool{false, true} {
		f := listen(t, func(f *far, c net.Conn, in *bufio.Reader) {
			f.request(in)
			io.WriteString(c, hello)
			f.request(in)
			if reset {
				c.(*net.TCPConn).SetLinger(0)
			}
		})
		p := f.pool(t)
		for i := range 10 {
			_, _, err := ask(t.Context(), p, time.Minute)
			var recycled *RecycledError
			if got, want := errors.As(err, &recycled), i%2 == 1; got != want || err != nil != want {
				t.Fatalf("reset %v, call %d: %v", reset, i, err)
			}
		}
		if f.requests.Load() != 10 || p.Recycled() != 5 {
			t.Errorf("reset %v: %d requests for 10 calls, %d recycled, want 5", reset, f.requests.Load(), p.Recycled())
		}
	}
	// On a new connection the same end is a plain failure.
	f := listen(t, func(f *far, _ net.Conn, in *bufio.Reader) { f.request(in) })
	p := f.pool(t)
	if _, _, err := ask(t.Context(), p, time.Minute); !errors.Is(err, io.EOF) || p.Recycled() != 0 {
		t.Errorf("new connection: %v, %d recycled", err, p.Recycled())
	}
	// And after the first byte of an answer it is a cut.
	f = listen(t, func(f *far, c net.Conn, in *bufio.Reader) {
		f.request(in)
		io.WriteString(c, hello)
		f.request(in)
		io.WriteString(c, "H")
	})
	p = f.pool(t)
	ask(t.Context(), p, time.Minute)
	if _, _, err := ask(t.Context(), p, time.Minute); !errors.Is(err, io.ErrUnexpectedEOF) || p.Recycled() != 0 {
		t.Errorf("after one byte: %v, %d recycled", err, p.Recycled())
	}
}

// The limit of each call holds, although an earlier deadline may stand on its
// connection.
func TestLimits(t *testing.T) {
	var delay = make(chan time.Duration, 1)
	f := listen(t, func(f *far, c net.Conn, in *bufio.Reader) {
		for f.request(in) != nil {
			time.Sleep(<-delay)
			io.WriteString(c, hello)
		}
	})
	p := f.pool(t)
	tests := []struct {
		limit, delay time.Duration
		late         bool
	}{
		{60 * time.Millisecond, 0, false},
		{time.Second, 150 * time.Millisecond, false}, // the deadline of the first call strikes within
		{80 * time.Millisecond, 0, false},            // shorter than the one that stands
		{80 * time.Millisecond, 400 * time.Millisecond, true},
		{time.Second, 0, false},
	}
	for i, tc := range tests {
		delay <- tc.delay
		start := time.Now()
		status, _, err := ask(t.Context(), p, tc.limit)
		took := time.Since(start)
		if late := errors.Is(err, os.ErrDeadlineExceeded); late != tc.late || !late && status != 200 {
			t.Errorf("call %d: %d %v", i, status, err)
		}
		if tc.late && (took < tc.limit || took > tc.limit+200*time.Millisecond) {
			t.Errorf("call %d ended after %v, its limit was %v", i, took, tc.limit)
		}
	}
}

// The end of a context ends the calls in flight that are its own, and no other.
func TestContextEnds(t *testing.T) {
	release := make(chan struct{})
	f := listen(t, func(f *far, c net.Conn, in *bufio.Reader) {
		for r := f.request(in); r != nil; r = f.request(in) {
			<-release
			io.WriteString(c, hello)
		}
	})
	p := f.pool(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		wg.Go(func() {
			_, _, err := ask(ctx, p, time.Minute)
			errs <- err
		})
	}
	other := make(chan error, 1)
	wg.Go(func() {
		_, _, err := ask(t.Context(), p, time.Minute)
		other <- err
	})
	for f.requests.Load() < 9 {
		time.Sleep(time.Millisecond)
	}
	start := time.Now()
	cancel()
	for range 8 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("in flight: %v", err)
		}
	}
	if took := time.Since(start); took > 500*time.Millisecond {
		t.Errorf("calls ended %v after their context", took)
	}
	close(release)
	if err := <-other; err != nil {
		t.Errorf("call of another context: %v", err)
	}
	wg.Wait()
	if _, _, err := ask(ctx, p, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if status, _, err := ask(t.Context(), p, time.Minute); status != 200 || err != nil {
		t.Errorf("the pool after it: %d %v", status, err)
	}
}

// Large bodies come whole, and their buffers are not kept.
func TestLargeBodies(t *testing.T) {
	const size = 20 << 20
	large := strings.Repeat("0123456789abcdef", size/16)
	for name, answer := range map[string]string{
		"length": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, large),
		"chunks": fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", size/2, large[:size/2], size/2, large[size/2:]),
	} {
		f := listen(t, always(answer))
		p := f.pool(t)
		for range 2 {
			if status, body, err := ask(t.Context(), p, time.Minute); status != 200 || body != large || err != nil {
				t.Fatalf("%s: %d, %d bytes, %v", name, status, len(body), err)
			}
		}
		if n := len(p.idle[0].in); n > keptBuffer {
			t.Errorf("%s: an idle connection keeps %d bytes", name, n)
		}
		if p.Dialed() != 1 {
			t.Errorf("%s: %d connections", name, p.Dialed())
		}
	}
}

func TestNoAllocation(t *testing.T) {
	f := listen(t, always(hello))
	p := f.pool(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request := []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
	call := func() {
		now := time.Now()
		c, err := p.Take(ctx, now, now.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Send(append(c.Buffer(), request...)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Head(); err != nil {
			t.Fatal(err)
		}
		for !c.Complete() {
			if err := c.More(); err != nil && err != io.EOF {
				t.Fatal(err)
			}
		}
		c.Release(now)
	}
	ours := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	// The far end runs in this process: net/http reads its requests.
	theirs := testing.AllocsPerRun(100, func() {
		c := &far{}
		c.request(bufio.NewReaderSize(strings.NewReader(string(request)), 4096))
	})
	if float64(ours.AllocsPerOp()) > theirs {
		t.Errorf("%d allocations a call, of which at most %.0f are the far end's", ours.AllocsPerOp(), theirs)
	}
}
