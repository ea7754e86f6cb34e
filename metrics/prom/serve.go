package prom

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a server.
type Options struct {
	Addr    string // host:port to listen on; an empty host is every address, port 0 a free one
	Version string // of the software
	// Ready says why the process can do no work now; nil is ready. It is asked at
	// each request for /readyz, from several goroutines, and must answer within a
	// second or so. A nil func is always ready.
	Ready func() error
}

// Source is an Agent or a Controller, also a nil one, which has nothing to show.
type Source interface {
	gatherer() prometheus.Gatherer
}

// Limits of the server. A scraper that is slower than that is cut off: its
// next try is seconds away.
const (
	headerWait   = 5 * time.Second
	requestWait  = 10 * time.Second
	answerWait   = 30 * time.Second
	idleWait     = 2 * time.Minute // above the usual scrape interval
	shutdownWait = 2 * time.Second // for answers under way
	headerBytes  = 16 << 10
	inFlight     = 4 // scrapes at once; the next gets 503
)

// Server serves the endpoints until it is stopped.
type Server struct {
	addr   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid once done is closed
}

// Serve listens, then serves the sources on a goroutine of its own until ctx
// ends or Stop is called. A taken or impossible address is an error here and
// names the flag. It takes one Agent and one Controller at most: two of a kind
// have the same series. Go and process figures and the build are added.
func Serve(ctx context.Context, opt Options, sources ...Source) (*Server, error) {
	if opt.Addr == "" { // would be a free port on every address
		return nil, errors.New("--metrics-addr is empty: give host:port, or :port for every address")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", opt.Addr)
	if err != nil {
		return nil, fmt.Errorf("--metrics-addr %s: %w", opt.Addr, reason(err))
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Server{addr: l.Addr().String(), cancel: cancel, done: make(chan struct{})}
	h := &http.Server{Handler: handler(opt, sources), ReadHeaderTimeout: headerWait, ReadTimeout: requestWait,
		WriteTimeout: answerWait, IdleTimeout: idleWait, MaxHeaderBytes: headerBytes}
	go func() {
		defer close(s.done)
		s.err = serve(ctx, h, l)
	}()
	return s, nil
}

// Addr is the address the server listens on.
func (s *Server) Addr() string { return s.addr }

// Stop ends the server and waits until it has ended: answers under way have two
// seconds. It returns what had broken the server before, and may be called more
// than once, and on nil.
func (s *Server) Stop() error {
	if s == nil {
		return nil
	}
	s.cancel()
	<-s.done
	return s.err
}

// serve runs h until ctx ends; an error means that it ended by itself.
func serve(ctx context.Context, h *http.Server, l net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve metrics on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWait)
	defer cancel()
	if h.Shutdown(limited) != nil {
		_ = h.Close() // a scraper that does not read: nothing is lost with it
	}
	<-ended
	return nil
}

// reason is why listening failed, without the address, which the user knows.
func reason(err error) error {
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		return sys.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
