package web

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// pair is a connection as the pool makes it, and the server's end.
func pair(t *testing.T) (client *Conn, server *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := dial(context.Background(), &net.Dialer{}, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return StampedConn(c), s.(*net.TCPConn)
}

// What a connection read last came when it came, however long nobody read it. The
// kernel begins to stamp a moment after it was asked, so the first bytes are left
// out.
func TestArrivedIsNotWhenItWasRead(t *testing.T) {
	c, s := pair(t)
	buf := make([]byte, 16)
	const late = 30 * time.Millisecond
	for i := range 4 {
		before := Since(time.Now())
		if _, err := s.Write([]byte("word")); err != nil {
			t.Fatal(err)
		}
		after := Since(time.Now())
		time.Sleep(late) // what is tested: a reader that is late
		if n, err := c.Read(buf); n != 4 || err != nil {
			t.Fatal(n, err)
		}
		if got := c.Arrived(); i > 0 && (got < before-time.Millisecond || got > after+late/2) {
			t.Errorf("read %d: sent between %v and %v, arrived %v", i, before, after, got)
		}
	}
}

func TestArrivalAfterAStepOfTheClock(t *testing.T) {
	now := time.Now()
	mono := Since(now)
	real := now.UnixNano() - int64(mono)
	rows := []struct {
		name   string
		offset int64 // at the read before
		stamp  int64
		want   time.Duration
	}{
		{"FirstRead", 0, now.UnixNano() - 5e6, mono - 5*time.Millisecond},
		{"SameClock", real, now.UnixNano() - 5e6, mono - 5*time.Millisecond},
		{"SetForward", real - 3e9, now.UnixNano() - 3e9, mono},
		{"SetBack", real + 3e9, now.UnixNano() + 3e9, mono},
		{"FromTheFuture", real, now.UnixNano() + 1e6, mono},
		{"TooOld", real, now.UnixNano() - 11e9, mono},
		{"NoStamp", real, 0, mono},
	}
	for _, r := range rows {
		c := &Conn{offset: r.offset, read: mono}
		c.arrived.Store(-1 << 62)
		if got := c.arrival(now, r.stamp); got != r.want {
			t.Errorf("%s: arrived %v, want %v", r.name, got, r.want)
		}
	}
}

// A connection whose server closed before it took the request is told from one
// whose server may have seen it.
func TestDeaf(t *testing.T) {
	rows := []struct {
		name string
		end  func(s *net.TCPConn, request func())
		want bool
	}{
		{"ClosedBefore", func(s *net.TCPConn, request func()) { s.Close(); request() }, true},
		{"ReadThenClosed", func(s *net.TCPConn, request func()) { request(); io.ReadFull(s, make([]byte, 7)); s.Close() }, false},
		{"ClosedUnread", func(s *net.TCPConn, request func()) { request(); s.Close() }, false},
		{"ReadThenReset", func(s *net.TCPConn, request func()) {
			request()
			io.ReadFull(s, make([]byte, 7))
			s.SetLinger(0)
			s.Close()
		}, false},
		{"ResetBefore", func(s *net.TCPConn, request func()) { s.SetLinger(0); s.Close(); request() }, false},
		{"Open", func(_ *net.TCPConn, request func()) { request() }, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c, s := pair(t)
			if _, err := c.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(s, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Write([]byte("world")); err != nil { // acknowledges
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			before := c.Written()
			r.end(s, func() { _, _ = c.Write([]byte("request")) }) // a reset comes, now or at the next call
			if before != 5 {
				t.Fatalf("%d bytes written before the request", before)
			}
			if got := c.Deaf(before); got != r.want {
				t.Errorf("deaf %v, want %v", got, r.want)
			}
			c.Close()
			if got := c.Deaf(before); got != r.want {
				t.Errorf("after the close: deaf %v, want %v", got, r.want)
			}
		})
	}
}

func TestReadErrorsAreThoseOfAConnection(t *testing.T) {
	c, s := pair(t)
	s.SetLinger(0)
	s.Close()
	_, err := c.Read(make([]byte, 1))
	op, ok := err.(*net.OpError)
	if !ok || op.Op != "read" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a reset: %v", err)
	}
	c, _ = pair(t)
	if err := c.SetReadDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err = c.Read(make([]byte, 1))
	if op, ok := err.(*net.OpError); !ok || op.Op != "read" || !op.Timeout() {
		t.Errorf("past the deadline: %v", err)
	}
	if n, err := c.Read(nil); n != 0 || err != nil {
		t.Errorf("a read of nothing: %d, %v", n, err)
	}
}
