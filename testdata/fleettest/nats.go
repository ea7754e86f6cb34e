package fleettest

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// natsWait bounds start and stop of a server, recovery of its store included.
const natsWait = 20 * time.Second

// NATSOptions are the settings of a server; the zero value is a server of the
// fleet's as the README tells to run it.
type NATSOptions struct {
	Name         string        // of the server; default "nats"
	Store        string        // JetStream's directory; default a new one, removed with the test
	Port         int           // default a free one; kept over restarts
	MaxPayload   int           // bytes; default 8 MiB
	PingInterval time.Duration // default 5s; the server's own default of 2m finds a cut cable too late for a test
	MaxFile      int64         // bytes of max_file_store; default 3/4 of what the disk has free
	MaxMemory    int64         // bytes of max_memory_store; default 3/4 of the machine's memory

	// Config is more configuration in the server's own language: accounts,
	// permissions, tls, cluster. It comes last, so what it repeats it replaces,
	// whole blocks too: jetstream { … } must name a store_dir again.
	Config string
}

// NATS is a nats-server with JetStream in a process of its own. Its methods are
// for the test's goroutine.
type NATS struct {
	opt    NATSOptions
	binary string
	config string  // path
	lives  []*Proc // one per start, the last one current
	url    string
}

// StartNATS starts a server and returns when clients can connect.
func StartNATS(t testing.TB, opt NATSOptions) *NATS {
	t.Helper()
	b := natsServer()
	if b.err != nil {
		t.Fatal(b.err)
	}
	opt.Name = cmp.Or(opt.Name, "nats")
	opt.MaxPayload = cmp.Or(opt.MaxPayload, 8<<20)
	opt.PingInterval = cmp.Or(opt.PingInterval, 5*time.Second)
	if opt.Store == "" {
		opt.Store = t.TempDir()
	}
	if opt.Port == 0 {
		opt.Port = freePort(t)
	}
	n := &NATS{opt: opt, binary: filepath.Join(b.dir, "natsd"), config: filepath.Join(t.TempDir(), "nats.conf")}
	n.Configure(t, opt.Config)
	n.start(t)
	return n
}

// Configure replaces NATSOptions.Config; Reload or Restart make it count.
func (n *NATS) Configure(t testing.TB, config string) {
	t.Helper()
	n.opt.Config = config
	if err := os.WriteFile(n.config, []byte(n.opt.text()), 0o600); err != nil {
		t.Fatalf("fleettest: %v", err)
	}
}

// text is the configuration file.
func (o NATSOptions) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "server_name: %q\nlisten: %q\nmax_payload: %d\nping_interval: %q\njetstream {\n  store_dir: %q\n",
		o.Name, loopback(o.Port), o.MaxPayload, o.PingInterval, o.Store)
	if o.MaxFile != 0 {
		fmt.Fprintf(&b, "  max_file_store: %d\n", o.MaxFile)
	}
	if o.MaxMemory != 0 {
		fmt.Fprintf(&b, "  max_memory_store: %d\n", o.MaxMemory)
	}
	fmt.Fprintf(&b, "}\n%s\n", o.Config)
	return b.String()
}

func (n *NATS) start(t testing.TB) {
	t.Helper()
	p := startProc(t, "nats-server "+n.opt.Name, exec.Command(n.binary, n.config))
	n.lives = append(n.lives, p)
	ctx, cancel := context.WithTimeout(t.Context(), natsWait)
	defer cancel()
	line, err := p.stdout.wait(ctx, "ready ", p.ended)
	if err != nil {
		t.Fatalf("fleettest: nats-server %s: %v", n.opt.Name, err)
	}
	n.url = strings.TrimPrefix(line, "ready ")
}

// Proc is the server's current process, or its last.
func (n *NATS) Proc() *Proc { return n.lives[len(n.lives)-1] }

// URL is where clients connect, tls:// if the configuration says so.
func (n *NATS) URL() string { return n.url }

// URLAs is URL with a user's name and password.
func (n *NATS) URLAs(user, password string) string {
	return strings.Replace(n.url, "://", "://"+url.UserPassword(user, password).String()+"@", 1)
}

// Addr is the host and port of URL, for NewCut.
func (n *NATS) Addr() string { return loopback(n.opt.Port) }

// Name is the server's name, as in stream and cluster information.
func (n *NATS) Name() string { return n.opt.Name }

// Store is JetStream's directory.
func (n *NATS) Store() string { return n.opt.Store }

// Kill ends the server with SIGKILL and returns when it is gone.
func (n *NATS) Kill() { n.Proc().Kill() }

// Stop ends the server with SIGTERM and returns when it is gone.
func (n *NATS) Stop(t testing.TB) {
	t.Helper()
	n.Proc().Term()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), natsWait)
	defer cancel()
	if _, err := n.Proc().Wait(ctx); err != nil {
		t.Fatalf("fleettest: stop: %v", err)
	}
}

// Pause stops the server with SIGSTOP: its connections stay open and mute.
func (n *NATS) Pause() { n.Proc().Pause() }

// Resume lets a paused server go on.
func (n *NATS) Resume() { n.Proc().Resume() }

// Reload makes the running server read its configuration again; Log says what
// it thought of it.
func (n *NATS) Reload() { n.Proc().signal(syscall.SIGHUP) }

// Restart starts the server again with the same port and store, after Stop if
// it still runs.
func (n *NATS) Restart(t testing.TB) {
	t.Helper()
	if n.Proc().Running() {
		n.Stop(t)
	}
	n.start(t)
}

// Log is what the server has logged in all its lives.
func (n *NATS) Log() string {
	var b strings.Builder
	for _, p := range n.lives {
		b.WriteString(p.Stderr())
	}
	return b.String()
}
