// Package fleet runs a whole fleet inside one process: an embedded nats-server
// without a port, and agents connected to it in memory. A laptop scan and a
// fleet of five hundred agents take the same path; this is the laptop's half.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/faultproxy/schedule"
)

const startWait = 10 * time.Second

// Embedded is a running server with its agents.
type Embedded struct {
	Bus *bus.Bus // the controller's connection

	capacity int
	server   *server.Server
	dir      string
	stop     context.CancelFunc
	wg       sync.WaitGroup
	errs     []error
}

// Start starts the server and n agents, each for capacity callers at once (0 = the
// default), and returns when all have announced themselves.
func Start(ctx context.Context, n, capacity int, version string) (*Embedded, error) {
	e := &Embedded{capacity: capacity}
	if err := e.serve(); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	b, err := bus.InProcess("controller", e.server)
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	e.Bus = b
	if err := b.Setup(ctx, bus.Memory); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	if err := b.OpenQueue(ctx, wire.QueueName(wire.DefaultPool, schedule.Digest())); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	if err := e.agents(ctx, n, version); err != nil {
		stopped := e.Stop()
		if errors.Is(stopped, err) { // an agent's own, said once
			return nil, stopped
		}
		return nil, errors.Join(err, stopped)
	}
	return e, nil
}

// stores are the directories of servers that have not been stopped.
var stores sync.Map

// Abandon removes what Stop would have, for a process that leaves without it.
func Abandon() {
	stores.Range(func(dir, _ any) bool {
		_ = os.RemoveAll(dir.(string)) // the process is leaving: nobody could be told
		return true
	})
}

func (e *Embedded) serve() error {
	dir, err := os.MkdirTemp("", "ordeal-")
	if err != nil {
		return fmt.Errorf("embedded NATS: %w", err)
	}
	e.dir = dir
	stores.Store(dir, nil)
	srv, err := server.NewServer(&server.Options{
		ServerName: "ordeal", DontListen: true, NoSigs: true, NoLog: true, MaxPayload: wire.MaxPayload,
		JetStream: true, StoreDir: dir, DisableJetStreamBanner: true,
	})
	if err != nil {
		return fmt.Errorf("embedded NATS: %w", err)
	}
	e.server = srv
	srv.Start()
	if !srv.ReadyForConnections(startWait) {
		return fmt.Errorf("embedded NATS: not ready within %v", startWait)
	}
	return nil
}

// agents starts n agents, each on its own connection as if it were remote. The
// agents do not end with ctx: an interrupted scan still collects what they had
// measured, then calls Stop.
func (e *Embedded) agents(ctx context.Context, n int, version string) error {
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = stop
	e.errs = make([]error, n)
	ready := make(chan error, n)
	for i := range n {
		id := fmt.Sprintf("local-%d", i+1)
		b, err := bus.InProcess(id, e.server)
		if err != nil {
			return err
		}
		opt := agent.Options{ID: id, Version: version, Digest: schedule.Digest(), Capacity: e.capacity, Labels: map[string]string{"zone": "local"},
			Ready: func(err error) { ready <- err }}
		e.wg.Go(func() {
			defer b.Close()
			e.errs[i] = agent.Run(run, b, opt)
		})
	}
	for range n {
		if err := <-ready; err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the agents, with every process and session of every target, and
// then the server. It returns what went wrong in the agents.
func (e *Embedded) Stop() error {
	defer stores.Delete(e.dir)
	if e.stop != nil {
		e.stop()
	}
	e.wg.Wait()
	if e.Bus != nil {
		e.Bus.Close()
	}
	if e.server != nil {
		e.server.Shutdown()
		e.server.WaitForShutdown()
	}
	return errors.Join(append(e.errs, os.RemoveAll(e.dir))...)
}
