package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ordeal/agent/mcp"
	"ordeal/metrics"
)

// responder is the barest server of MCP over HTTP: it reads a request by its
// length, finds the id and answers with one write.
type responder struct {
	net.Listener
	events bool
}

func respond(t testing.TB, events bool) *responder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &responder{l, events}
	var open []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open = append(open, c)
			go r.serve(c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
		for _, c := range open {
			c.Close()
		}
	})
	return r
}

func (r *responder) URL() string { return "http://" + r.Addr().String() + "/mcp" }

func (r *responder) serve(c net.Conn) {
	in := bufio.NewReader(c)
	var body, out, answer []byte
	for {
		size := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) <= 2 {
				break
			}
			if rest, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				for _, d := range bytes.TrimSpace(rest) {
					size = 10*size + int(d-'0')
				}
			}
		}
		if cap(body) < size {
			body = make([]byte, size)
		}
		body = body[:size]
		if _, err := readFull(in, body); err != nil {
			return
		}
		out, answer = r.answer(out[:0], answer[:0], body)
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

func readFull(in *bufio.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = in.Read(p[n:])
		n += k
	}
	return n, err
}

func (r *responder) answer(out, answer, body []byte) (o, a []byte) {
	_, rest, found := bytes.Cut(body, []byte(`"id":`))
	if !found {
		return append(out, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"...), answer
	}
	id, _, _ := bytes.Cut(rest, []byte(","))
	result, extra := `{"content":[{"type":"text","text":"hello there"}]}`, ""
	if bytes.Contains(body, []byte(`"initialize"`)) {
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"1"}}`
		extra = "Mcp-Session-Id: s\r\n"
	}
	answer = append(answer, `{"jsonrpc":"2.0","id":`...)
	answer = append(append(answer, id...), `,"result":`...)
	answer = append(append(answer, result...), '}')
	out = append(out, "HTTP/1.1 200 OK\r\nDate: Tue, 01 Dec 2026 00:00:00 GMT\r\n"...)
	out = append(out, extra...)
	if r.events {
		const before = "event: message\ndata: "
		out = append(out, "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"...)
		out = append(strconv.AppendInt(out, int64(len(before)+len(answer)+2), 16), "\r\n"+before...)
		return append(append(out, answer...), "\n\n\r\n0\r\n\r\n"...), answer
	}
	out = append(out, "Content-Type: application/json\r\nContent-Length: "...)
	out = append(strconv.AppendInt(out, int64(len(answer)), 10), "\r\n\r\n"...)
	return append(out, answer...), answer
}

// BenchmarkCall is one call over loopback, in both ways of the client side by
// side. Allocations of the responder, which runs in the same process, count too.
func BenchmarkCall(b *testing.B) {
	for _, form := range []string{"json", "sse"} {
		for _, way := range []string{"fast", "thorough"} {
			for _, callers := range []int{1, 32} {
				b.Run(fmt.Sprintf("%s/%s/%d", form, way, callers), func(b *testing.B) {
					benchCall(b, respond(b, form == "sse").URL(), way == "thorough", callers)
				})
			}
		}
	}
}

func benchCall(b *testing.B, endpoint string, thorough bool, callers int) {
	cfg := webConfig(endpoint)
	cfg.Protocol, cfg.Concurrency = mcp.LatestLegacy, 2*callers
	c, err := mcp.Dial(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	if thorough {
		c.Thoroughly()
	}
	s, err := c.NewSession(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	inFlight(b, callers, func() bool { x := s.Call(ctx, "echo", benchArgs, false); return x.Outcome == metrics.OK })
}

// BenchmarkPipe is one call on stdio with several in flight, against a process
// that answers lines. ORDEAL_BENCH_SERVER names another command to talk to,
// ORDEAL_BENCH_PROTOCOL the revision.
func BenchmarkPipe(b *testing.B) {
	for _, way := range []string{"fast", "thorough"} {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/%d", way, callers), func(b *testing.B) {
				cfg, _ := fakeConfig(b, "bare")
				tool, args := "echo", benchArgs
				if command := os.Getenv("ORDEAL_BENCH_SERVER"); command != "" {
					cfg.Command, args = strings.Fields(command), json.RawMessage(`{"message":"hello"}`)
				}
				cfg.Timeout, cfg.Protocol = 30*time.Second, os.Getenv("ORDEAL_BENCH_PROTOCOL")
				c, err := mcp.Dial(b.Context(), cfg)
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close(context.Background())
				if way == "thorough" {
					c.Thoroughly()
				}
				s, err := c.NewSession(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				inFlight(b, callers, func() bool { x := s.Call(ctx, tool, args, false); return x.Outcome == metrics.OK })
			})
		}
	}
}

// inFlight makes b.N calls, so many at once.
func inFlight(b *testing.B, callers int, call func() bool) {
	b.Helper()
	var left, bad atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	before := cpuTime()
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if !call() {
					bad.Add(1)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
	if bad.Load() > 0 {
		b.Fatalf("%d calls failed", bad.Load())
	}
}

// cpuTime is what this process has used; a server of its own is not part of it.
func cpuTime() time.Duration {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// bare answers lines as they come, and writes when no line is waiting.
func (f *fake) bare() {
	in, out := bufio.NewReaderSize(os.Stdin, 64<<10), bufio.NewWriterSize(os.Stdout, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if _, rest, found := bytes.Cut(line, []byte(`"id":`)); found {
			id, _, _ := bytes.Cut(rest, []byte(","))
			out.WriteString(`{"jsonrpc":"2.0","id":`)
			out.Write(id)
			if bytes.Contains(line, []byte(`"initialize"`)) {
				out.WriteString(`,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"1"}}}` + "\n")
			} else {
				out.WriteString(`,"result":{"content":[{"type":"text","text":"hello there"}]}}` + "\n")
			}
		}
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
}
