package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// script is a connection that says what it was told to.
type script struct {
	io.Reader
	net.Conn
}

func (s script) Read(p []byte) (int, error)      { return s.Reader.Read(p) }
func (s script) SetDeadline(time.Time) error     { return nil }
func (s script) Close() error                    { return nil }
func (s script) Write(p []byte) (n int, e error) { return len(p), nil }

// hear reads one answer from src.
func hear(src io.Reader, maxHeader int) (status int, body string, kept bool, err error) {
	p := &Pool{cfg: Config{MaxHeader: maxHeader}.withDefaults()}
	c := &Conn{pool: p, net: script{Reader: src}, lazy: true, calls: 1}
	h, err := c.Head()
	if err != nil {
		return 0, "", false, err
	}
	for !c.Complete() {
		if err := c.More(); err != nil && err != io.EOF {
			return h.Status, string(c.Body()), false, err
		}
	}
	status, body = h.Status, string(c.Body())
	c.Release(time.Now())
	return status, body, len(p.idle) == 1, nil
}

func TestAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	malformed := &MalformedError{}
	tests := []struct {
		name, raw, body string
		status          int
		kept            bool
		fails           any // of errors.As or a sentinel
	}{
		{"length", ok + "CONTENT-length:\t5 \r\n\r\nhello", "hello", 200, true, nil},
		{"no body", ok + "Content-Length: 0\r\n\r\n", "", 200, true, nil},
		{"chunks", ok + "Transfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n2 ;x=\"y\"\r\nlo\r\n0\r\nA: b\r\n\r\n", "hello", 200, true, nil},
		{"hexadecimal chunk", ok + "Transfer-Encoding: chunked\r\n\r\n00A\r\n0123456789\r\n0\r\n\r\n", "0123456789", 200, true, nil},
		{"to the end", ok + "\r\nhello", "hello", 200, false, nil},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, false, nil},
		{"HTTP/1.0, kept", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, true, nil},
		{"close", ok + "Connection: Upgrade, CLOSE\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, false, nil},
		{"more than the answer", ok + "Content-Length: 5\r\n\r\nhelloHTTP", "hello", 200, false, nil},
		{"204", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", "", 204, true, nil},
		{"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n", "", 304, true, nil},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", "x", 200, true, nil},
		{"informational", "HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + ok + "Content-Length: 1\r\n\r\nx", "x", 200, true, nil},
		{"endless informational", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 50), "", 0, false, malformed},
		{"switch", "HTTP/1.1 101 Switching Protocols\r\n\r\n", "", 0, false, malformed},
		{"length and chunks", ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", "ab", 200, false, nil},
		{"two lengths", ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "", 0, false, malformed},
		{"list of lengths", ok + "Content-Length: 1, 1\r\n\r\nab", "", 0, false, malformed},
		{"signed length", ok + "Content-Length: +1\r\n\r\nab", "", 0, false, malformed},
		{"huge length", ok + "Content-Length: 99999999999999999999\r\n\r\nab", "", 0, false, malformed},
		{"other coding", ok + "Transfer-Encoding: gzip\r\n\r\nab", "", 0, false, malformed},
		{"chunked twice", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", 0, false, malformed},
		{"folded", ok + "A: b\r\n c: d\r\n\r\n", "", 0, false, malformed},
		{"space before the colon", ok + "A : b\r\n\r\n", "", 0, false, malformed},
		{"no colon", ok + "A\r\n\r\n", "", 0, false, malformed},
		{"NUL in a value", ok + "A: b\x00\r\n\r\n", "", 0, false, malformed},
		{"CR in a value", ok + "A: b\rC: d\r\n\r\n", "", 0, false, malformed},
		{"other protocol", "ICY 200 OK\r\n\r\n", "", 0, false, malformed},
		{"two digits", "HTTP/1.1 20 OK\r\n\r\n", "", 0, false, malformed},
		{"large head", ok + "A: " + strings.Repeat("b", 3000) + "\r\n\r\n", "", 0, false, malformed},
		{"many headers", ok + strings.Repeat("A: b\r\n", 500) + "\r\n", "", 0, false, malformed},
		{"large trailers", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 100) + "\r\n", "", 0, false, malformed},
		{"endless chunk line", ok + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 10_000) + "\r\n", "", 0, false, malformed},
		{"chunk size out of range", ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", "", 0, false, malformed},
		{"line feeds between chunks", ok + "Transfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n", "", 0, false, malformed},
		{"nothing", "", "", 0, false, io.EOF},
		{"half a head", ok + "Content-", "", 0, false, io.ErrUnexpectedEOF},
		{"half a body", ok + "Content-Length: 9\r\n\r\nhello", "hello", 200, false, io.ErrUnexpectedEOF},
		{"half a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n9\r\nhello", "hello", 200, false, io.ErrUnexpectedEOF},
		{"no last chunk", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "hello", 200, false, io.ErrUnexpectedEOF},
	}
	for _, tc := range tests {
		for cut, src := range map[string]io.Reader{"whole": strings.NewReader(tc.raw), "bytewise": iotest.OneByteReader(strings.NewReader(tc.raw)),
			"halves": iotest.HalfReader(strings.NewReader(tc.raw)), "with the end": iotest.DataErrReader(strings.NewReader(tc.raw))} {
			status, body, kept, err := hear(src, 2<<10)
			switch want := tc.fails.(type) {
			case nil:
				if err != nil || status != tc.status || body != tc.body || kept != tc.kept && !(tc.name == "more than the answer" && cut != "whole") {
					t.Errorf("%s, %s: %d %q, kept %v, %v; want %d %q, %v", tc.name, cut, status, body, kept, err, tc.status, tc.body, tc.kept)
				}
			case *MalformedError:
				if !errors.As(err, &want) {
					t.Errorf("%s, %s: %v, want a malformed answer", tc.name, cut, err)
				}
			case error:
				if !errors.Is(err, want) || status != tc.status || body != tc.body {
					t.Errorf("%s, %s: %d %q %v, want %v", tc.name, cut, status, body, err, want)
				}
			}
		}
	}
}

// FuzzAnswer: what is taken for an answer here net/http takes for the same one, and
// it does not matter how the network cuts it.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nA: b\r\n\r\n"))
	f.Add([]byte("HTTP/1.0 404 No\nConnection: keep-alive\nContent-Length: 0\n\n"))
	f.Add([]byte("HTTP/1.1 103 x\r\n\r\nHTTP/1.1 204 y\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\nto the end"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		status, body, kept, err := hear(bytes.NewReader(raw), 4<<10)
		bits, bitBody, bitKept, bitErr := hear(iotest.OneByteReader(bytes.NewReader(raw)), 4<<10)
		if (err == nil) != (bitErr == nil) || err == nil && (status != bits || body != bitBody || kept && !bitKept) {
			t.Errorf("cutting matters: %d %q %v, %d %q %v", status, body, err, bits, bitBody, bitErr)
		}
		if err != nil {
			return
		}
		in := bufio.NewReader(bytes.NewReader(raw))
		for {
			r, err := http.ReadResponse(in, &http.Request{Method: "POST"})
			if err != nil {
				t.Fatalf("we: %d %q; net/http: %v", status, body, err)
			}
			if r.StatusCode < 200 {
				continue
			}
			all, err := io.ReadAll(r.Body)
			if r.StatusCode != status || string(all) != body || err != nil {
				t.Errorf("we: %d %q; net/http: %d %q %v", status, body, r.StatusCode, all, err)
			}
			return
		}
	})
}
