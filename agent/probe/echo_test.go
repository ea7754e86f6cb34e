package probe

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// echo is a server on loopback that notes when each operation came in, answers at
// once, and stands still for a while if it is told to. Its client speaks eight
// bytes a call, so that what is measured is the engine.
type echo struct {
	addr  string
	stall time.Duration
	wg    sync.WaitGroup

	mu    sync.Mutex
	from  time.Time // of the stall; zero: none
	seen  map[uint64]time.Time
	conns []net.Conn

	listener net.Listener // nil: only the client's side is here
}

func newEcho(t testing.TB) *echo {
	t.Helper()
	e, err := listenEcho()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.mu.Lock()
		e.listener.Close()
		for _, c := range e.conns {
			c.Close()
		}
		e.mu.Unlock()
		e.wg.Wait()
	})
	return e
}

func listenEcho() (*echo, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &echo{addr: l.Addr().String(), listener: l, seen: map[uint64]time.Time{}}
	e.wg.Go(func() { e.accept(l) })
	return e, nil
}

func (e *echo) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.conns = append(e.conns, c)
		e.mu.Unlock()
		e.wg.Go(func() { e.serve(c) })
	}
}

func (e *echo) serve(c net.Conn) {
	defer c.Close()
	var buf [8]byte
	for {
		if _, err := io.ReadFull(c, buf[:]); err != nil {
			return
		}
		now := time.Now()
		e.mu.Lock()
		e.seen[binary.BigEndian.Uint64(buf[:])] = now
		from := e.from
		e.mu.Unlock()
		if !from.IsZero() && now.After(from) {
			time.Sleep(time.Until(from.Add(e.stall)))
		}
		if _, err := c.Write(buf[:]); err != nil {
			return
		}
	}
}

func (e *echo) Survey(context.Context) (*wire.Survey, error)               { return &wire.Survey{}, nil }
func (e *echo) Alive(context.Context) (alive, restarted bool, exit string) { return true, false, "" }
func (e *echo) Virtual() bool                                              { return false }
func (e *echo) Close(context.Context) error                                { return nil }

func (e *echo) Session(context.Context, int) (target.Session, error) {
	c, err := net.Dial("tcp", e.addr)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns = append(e.conns, c)
	return &echoSession{conn: c}, nil
}

type echoSession struct {
	conn net.Conn
	buf  [8]byte
}

func (s *echoSession) Call(_ context.Context, c target.Call) metrics.Exchange {
	start := time.Now()
	binary.BigEndian.PutUint64(s.buf[:], c.Op)
	_, err := s.conn.Write(s.buf[:])
	if err == nil {
		_, err = io.ReadFull(s.conn, s.buf[:])
	}
	if err != nil {
		return metrics.Exchange{Outcome: metrics.Connection, Message: oneLine(err.Error())}
	}
	return metrics.Exchange{Delivered: true, Executed: metrics.Yes, Latency: time.Since(start)}
}
