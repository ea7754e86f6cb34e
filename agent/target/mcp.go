package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"ordeal/agent/mcp"
	"ordeal/agent/secret"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// maxRestarts bounds how often one target's process is started anew, or its
// event stream opened anew: a server that dies of everything is known by then.
const maxRestarts = 100

// mcpTarget is a server of the Model Context Protocol. Over streamable HTTP each
// virtual user has a session of its own; on stdio the users share its processes.
type mcpTarget struct {
	t        wire.Target
	clients  []*mcp.Client // user u is with u mod their number; more than one on stdio only
	redact   *secret.Redactor
	mu       sync.Mutex // guards sessions
	sessions map[int]*mcpSession
	restarts atomic.Int64
}

// mcpSession opens on first use; its users wait for one opening.
type mcpSession struct {
	mu   sync.Mutex
	open *mcp.Session
}

// openMCP connects. The error is a *mcp.StartError where the server is to blame.
func openMCP(ctx context.Context, t wire.Target) (Target, error) {
	cfg, err := mcpConfig(t)
	if err != nil {
		return nil, err
	}
	m := &mcpTarget{t: t, redact: cfg.Redactor, sessions: map[int]*mcpSession{}}
	if err := m.dial(ctx, cfg); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	return m, nil
}

// dial starts the processes of a stdio server side by side, or reaches the one
// server there is. When one cannot be started none is left.
func (m *mcpTarget) dial(ctx context.Context, cfg mcp.Config) error {
	n := 1
	if cfg.Transport == wire.Stdio {
		n = max(n, m.t.Processes)
	}
	clients, errs := make([]*mcp.Client, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { clients[i], errs[i] = mcp.Dial(ctx, cfg) })
	}
	wg.Wait()
	m.clients = clients
	for _, err := range errs {
		if err != nil {
			m.closeAll(ctx)
			return err // the others failed likewise, or are not to blame
		}
	}
	return nil
}

// closeAll ends all clients there are side by side, and reports whether a process
// survived.
func (m *mcpTarget) closeAll(ctx context.Context) (survived bool) {
	var left atomic.Bool
	var wg sync.WaitGroup
	for _, c := range m.clients {
		if c != nil {
			wg.Go(func() {
				if c.Close(ctx).Step == "survived" {
					left.Store(true)
				}
			})
		}
	}
	wg.Wait()
	return left.Load()
}

func (m *mcpTarget) client(user int) *mcp.Client { return m.clients[user%len(m.clients)] }

// mcpConfig resolves the references of a target.
func mcpConfig(t wire.Target) (mcp.Config, error) {
	redact := new(secret.Redactor)
	var problems []error
	resolve := func(what, text string) string {
		value, err := redact.Resolve(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("target: %s: %w", what, err))
		}
		return value
	}
	cfg := mcp.Config{
		Transport: t.Transport, Command: t.Command, Endpoint: t.Endpoint, Protocol: t.Protocol,
		Timeout: t.Timeout, StartTimeout: t.StartTimeout, StopGrace: t.StopGrace,
		MaxMessage: t.MaxMessage, Insecure: t.Insecure, Concurrency: poolSize, Redactor: redact,
	}
	if secret.HasReference(t.Endpoint) {
		cfg.Endpoint = resolve("endpoint", t.Endpoint)
	}
	for _, h := range t.Headers {
		cfg.Headers = append(cfg.Headers, wire.Header{Name: h.Name, Value: resolve("header "+h.Name, h.Value)})
	}
	for _, v := range t.Env {
		cfg.Env = append(cfg.Env, wire.EnvVar{Name: v.Name, Value: resolve("environment variable "+v.Name, v.Value)})
	}
	return cfg, errors.Join(problems...)
}

// poolSize is how many idle connections are kept: more callers than that at once
// on one agent open and close some.
const poolSize = 512

// Survey asks for the catalogue. What the server did against the protocol so far
// is in the notes.
func (m *mcpTarget) Survey(ctx context.Context) (*wire.Survey, error) {
	s, err := m.session(ctx, 0)
	if err != nil {
		return nil, err
	}
	tools, notes, err := s.ListTools(ctx)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	first := m.client(0)
	info := first.Info()
	stderr, written := first.Stderr()
	notes = append(first.Notes(), notes...)
	if kept := int64(len(stderr)); written > kept {
		notes = append(notes, fmt.Sprintf("stderr: %d bytes written, the last %d kept here", written, kept))
	}
	for i := range tools {
		m.hide(&tools[i])
	}
	return &wire.Survey{
		Name: m.redact.Text(info.Name), Version: m.redact.Text(info.Version), ProtocolVersion: info.Protocol,
		Capabilities: m.hidden(info.Capabilities), Instructions: m.redact.Text(info.Instructions), Tools: tools, Language: language(m.t.Command, info, stderr),
		StartupUS: info.Startup.Microseconds(), Notes: notes, Stderr: stderr,
	}, nil
}

// hide takes secrets that a server repeats out of what it says about a tool. The
// name stays: it is what has to be called.
func (m *mcpTarget) hide(t *wire.Tool) {
	t.Description = m.redact.Text(t.Description)
	t.InputSchema, t.OutputSchema = m.hidden(t.InputSchema), m.hidden(t.OutputSchema)
}

// hidden redacts inside the strings of a JSON text, which stays valid.
func (m *mcpTarget) hidden(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	return json.RawMessage(m.redact.Text(string(raw)))
}

// Notes are what the server did against the protocol so far, beside its answers.
func (m *mcpTarget) Notes() []string {
	notes := m.client(0).Notes()
	for _, c := range m.clients[1:] {
		for _, n := range c.Notes() {
			if !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
	}
	return notes
}

// Sessions counts those that the server opened for us, and of these the ones in
// place of lost ones.
func (m *mcpTarget) Sessions() (opened, reopened int64) {
	for _, c := range m.clients {
		opened += c.Opened()
		reopened += c.Reopened()
	}
	return opened, reopened
}

// OneSession opens a session for one operation; done closes it.
func (m *mcpTarget) OneSession(ctx context.Context, user int) (s Session, done func(), err error) {
	open, err := m.client(user).NewSession(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("target: session of an operation of user %d: %w", user, err)
	}
	return mcpCaller{open, m}, func() { open.Close(ctx) }, nil
}

func (m *mcpTarget) session(ctx context.Context, user int) (*mcp.Session, error) {
	m.mu.Lock()
	s := m.sessions[user]
	if s == nil {
		s = &mcpSession{}
		m.sessions[user] = s
	}
	m.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		open, err := m.client(user).NewSession(ctx)
		if err != nil {
			return nil, fmt.Errorf("target: session of user %d: %w", user, err)
		}
		s.open = open
	}
	return s.open, nil
}

// Session of a virtual user.
func (m *mcpTarget) Session(ctx context.Context, user int) (Session, error) {
	s, err := m.session(ctx, user)
	if err != nil {
		return nil, err
	}
	return mcpCaller{s, m}, nil
}

type mcpCaller struct {
	s *mcp.Session
	m *mcpTarget
}

func (c mcpCaller) Call(ctx context.Context, call Call) metrics.Exchange {
	x := c.s.Call(ctx, call.Tool, call.Args, call.Keep)
	if call.Keep {
		x.Text, x.Structured = c.m.redact.Text(x.Text), c.m.hidden(x.Structured)
	}
	return x
}

// Alive pings, and starts a server anew that has died or hangs. The exit status
// is that of the process it replaced. Of several processes all have to be alive.
func (m *mcpTarget) Alive(ctx context.Context) (alive, restarted bool, exit string) {
	alive = true
	for _, c := range m.clients {
		ok, again, how := m.revive(ctx, c)
		alive, restarted = alive && ok, restarted || again
		if exit == "" {
			exit = how
		}
	}
	return alive, restarted, exit
}

func (m *mcpTarget) revive(ctx context.Context, c *mcp.Client) (alive, restarted bool, exit string) {
	if c.Alive(ctx) {
		return true, false, ""
	}
	if m.restarts.Add(1) > maxRestarts {
		return false, false, ""
	}
	before := c.Restarts()
	report, err := c.Restart(ctx)
	if err != nil || c.Restarts() == before {
		return false, false, report.Exit
	}
	return true, true, report.Exit
}

// Virtual is false: latency is really spent.
func (m *mcpTarget) Virtual() bool { return false }

// Close ends the sessions, then the process. A process that survives even
// SIGKILL is an error.
func (m *mcpTarget) Close(ctx context.Context) error {
	if m.closeAll(ctx) {
		return fmt.Errorf("target: the server process did not end within its bounds: end it by hand")
	}
	return nil
}
