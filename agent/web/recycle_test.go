package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"ordeal/agent/web"
	"ordeal/metrics"
)

// closing is a server that gives each connection to serve, which counts the
// requests it has read, and then closes it without having said so.
func closing(t *testing.T, serve func(conn *net.TCPConn, in *bufio.Reader, read func() bool)) (url string, requests *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int64)
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				serve(conn.(*net.TCPConn), in, func() bool {
					req, err := http.ReadRequest(in)
					if err != nil {
						return false
					}
					io.Copy(io.Discard, req.Body)
					requests.Add(1)
					return true
				})
			})
		}
	})
	return "http://" + l.Addr().String() + "/", requests
}

func ok(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }

func client(t *testing.T, method, url string) *web.Client {
	return dial(t, web.Config{Method: method, URL: url}, func(cfg *web.Config) {
		if method == "POST" {
			cfg.Body = "{}"
		}
	})
}

// A server that closes every connection just after its answer, at the moment the
// next request goes out: no call fails, unless the close has really crossed a
// request on the wire, and no request is seen twice.
func TestClosedAtTheMomentOfReuse(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		t.Run(method, func(t *testing.T) {
			url, requests := closing(t, func(conn *net.TCPConn, _ *bufio.Reader, read func() bool) {
				if read() {
					ok(conn)
				}
			})
			c := client(t, method, url)
			var served, crossed, recycled atomic.Int64
			var callers sync.WaitGroup
			for range 4 {
				callers.Go(func() {
					for range 150 {
						x := c.Do(context.Background(), nil, false)
						recycled.Add(int64(len(x.Notes)))
						switch {
						case x.Outcome == metrics.OK:
							served.Add(1)
						case x.Outcome == metrics.Connection && strings.Contains(x.Message, "as it was used again"):
							crossed.Add(1)
						default:
							t.Errorf("%v %s", x.Outcome, x.Message)
						}
					}
				})
			}
			callers.Wait()
			t.Logf("600 calls: %d served, %d crossed, %d recycled; %d requests seen", served.Load(), crossed.Load(), recycled.Load(), requests.Load())
			if served.Load() != requests.Load() || crossed.Load() > 60 {
				t.Errorf("%d served, %d requests seen, %d crossed", served.Load(), requests.Load(), crossed.Load())
			}
		})
	}
}

// A request that the server has read, or may have, is not sent again, whatever its
// method: the library would repeat a GET without a word.
func TestCrossedIsNotSentAgain(t *testing.T) {
	readable := func(conn *net.TCPConn) {
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Error(err)
			return
		}
		var one [1]byte
		raw.Read(func(fd uintptr) bool {
			_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
			return err != syscall.EAGAIN
		})
	}
	rows := []struct {
		name string
		end  func(conn *net.TCPConn, read func() bool)
		seen int64
	}{
		{"Read", func(_ *net.TCPConn, read func() bool) { read() }, 2},
		{"Unread", func(conn *net.TCPConn, _ func() bool) { readable(conn) }, 1},
		{"ReadThenReset", func(conn *net.TCPConn, read func() bool) { read(); conn.SetLinger(0) }, 2},
	}
	for _, r := range rows {
		for _, method := range []string{"GET", "POST"} {
			t.Run(r.name+"/"+method, func(t *testing.T) {
				url, requests := closing(t, func(conn *net.TCPConn, _ *bufio.Reader, read func() bool) {
					if read() {
						ok(conn)
						r.end(conn, read)
					}
				})
				c := client(t, method, url)
				first, second := c.Do(context.Background(), nil, false), c.Do(context.Background(), nil, false)
				if first.Outcome != metrics.OK || second.Outcome != metrics.Connection || second.Delivered || second.Executed != metrics.Unknown {
					t.Errorf("%v, then %v executed %v %q", first.Outcome, second.Outcome, second.Executed, second.Message)
				}
				if !strings.Contains(second.Message, "closed the connection as it was used again") {
					t.Errorf("message %q", second.Message)
				}
				if n := requests.Load(); n != r.seen {
					t.Errorf("the server read %d requests, want %d", n, r.seen)
				}
			})
		}
	}
}
