package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ordeal/agent/mcp"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

func TestNoiseOnStdout(t *testing.T) {
	s := start(t, "banner")
	session := s.session(t)
	for i := range 3 {
		x := say(t, session, fmt.Sprint("hello ", i))
		if x.Outcome != metrics.OK || x.Text != fmt.Sprint("hello ", i) {
			t.Fatalf("call %d: %+v", i, x)
		}
	}
	wantNote(t, "client", s.Notes(), `line that is no JSON-RPC message (6 times): { starting up`)
	wantNote(t, "client", s.Notes(), "empty line in the stream")
}

func TestReplyBehindText(t *testing.T) {
	s := start(t, "glued", func(c *mcp.Config) { c.Timeout = 300 * time.Millisecond })
	session := s.session(t)
	var other metrics.Exchange
	x := say(t, session, "glued")
	other = say(t, session, "fine")
	wantOutcome(t, "glued", x, metrics.Timeout, "")
	wantNote(t, "glued", x.Notes, "debug: {")
	wantNote(t, "client", s.Notes(), "held JSON after 7 bytes of text")
	wantOutcome(t, "next", other, metrics.OK, "")
}

func TestShutDownSteps(t *testing.T) {
	tests := []struct {
		mode, step string
		least      time.Duration
	}{
		{"", "stdin", 0},
		{"lateexit", "stdin", 300 * time.Millisecond},
		{"termexit", "sigterm", time.Second},
		{"stubborn", "sigkill", 2 * time.Second},
		{"grandchild", "sigterm", time.Second},
	}
	for _, tc := range tests {
		t.Run("mode "+tc.mode, func(t *testing.T) {
			t.Parallel()
			mode := tc.mode
			if mode == "" {
				mode = "plain"
			}
			s := start(t, mode, func(c *mcp.Config) { c.StopGrace = time.Second })
			wantOutcome(t, "call", say(t, s.session(t), "x"), metrics.OK, "")
			cancelled, cancel := context.WithCancel(context.Background())
			cancel() // a context that has ended must not keep the process alive
			r := s.Close(cancelled)
			if r.Step != tc.step || r.Took < tc.least || r.Took > tc.least+1500*time.Millisecond {
				t.Errorf("shut-down %+v, want step %s in %v", r, tc.step, tc.least)
			}
			noneLeft(t, s.journal)
			wantOutcome(t, "after close", say(t, mustSession(t, s), "x"), metrics.Connection, "closed")
		})
	}
}

func mustSession(t *testing.T, s *server) *mcp.Session {
	t.Helper()
	session, err := s.NewSession(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestStartErrors(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, mode string
		command    string
		class      mcp.StartClass
		exit, text string
		starts     int
	}{
		{name: "exits with a message", mode: "exit3", class: mcp.Startup, exit: "exit status 3", text: "missing API_KEY=[redacted]", starts: 1},
		{name: "exits without one", mode: "exit0", class: mcp.Startup, exit: "exit status 0", starts: 2},
		{name: "dies of a signal", mode: "signal", class: mcp.Startup, exit: "signal: killed", starts: 2},
		{name: "does not exist", command: "/no/such/server", class: mcp.Startup, text: "no such file"},
		{name: "is not executable", command: script, class: mcp.Startup, text: "permission denied"},
		{name: "no version", mode: "noversion", class: mcp.NotMCP, text: "named none", starts: 1},
		{name: "unknown version", mode: "futureversion", class: mcp.NotMCP, text: `"9999-01-01"`, starts: 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			cfg, journal := fakeConfig(t, tc.mode)
			if tc.command != "" {
				cfg.Command = []string{tc.command}
			}
			began := time.Now()
			_, err := mcp.Dial(t.Context(), cfg)
			var start *mcp.StartError
			if !errors.As(err, &start) {
				t.Fatalf("error %T %v", err, err)
			}
			if start.Class != tc.class || start.Exit != tc.exit || !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v\n%v", start, err)
			}
			if strings.Contains(fmt.Sprintf("%+v", start), "sk-fake") {
				t.Errorf("secret in %+v", start)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			if n := count(notes(t, journal), "start", ""); n != tc.starts {
				t.Errorf("%d starts, want %d", n, tc.starts)
			}
		})
	}
}

func TestSlowStart(t *testing.T) {
	s := start(t, "slowstart")
	if up := s.Info().Startup; up < 800*time.Millisecond || s.Info().Protocol != mcp.LatestLegacy {
		t.Errorf("info %+v", s.Info())
	}
	if x := say(t, s.session(t), "x"); x.Outcome != metrics.OK || x.Latency > 500*time.Millisecond {
		t.Errorf("first call: %v in %v", x.Outcome, x.Latency)
	}
	if n := count(notes(t, s.journal), "start", ""); n != 1 {
		t.Errorf("%d starts", n)
	}

	cfg, journal := fakeConfig(t, "neverstart")
	cfg.StartTimeout = 400 * time.Millisecond
	cfg.StopGrace = 200 * time.Millisecond
	_, err := mcp.Dial(t.Context(), cfg)
	var start *mcp.StartError
	if !errors.As(err, &start) || start.Class != mcp.Startup || !strings.Contains(start.Stderr, "waiting for the database") {
		t.Errorf("never starts: %v", err)
	}
	if n := count(notes(t, journal), "start", ""); n != 1 {
		t.Errorf("never starts: %d starts", n)
	}
}

func TestStderrFlood(t *testing.T) {
	s := start(t, "stderrflood")
	session := s.session(t)
	for i, variant := range []string{"text", "binary", "text", "binary"} {
		if x := say(t, session, variant); x.Outcome != metrics.OK {
			t.Fatalf("call %d: %v %s", i, x.Outcome, x.Message)
		}
	}
	tail, written := s.Stderr()
	for range 100 { // the drain runs beside the calls
		if tail, written = s.Stderr(); written == 4*5<<20 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if written != 4*5<<20 || len(tail) > 64<<10 || tail == "" {
		t.Errorf("%d bytes written, %d kept", written, len(tail))
	}
}

func TestBigReplies(t *testing.T) {
	s := start(t, "big")
	session := s.session(t)
	for _, n := range []int{1, 65_400, 65_535, 65_536, 65_537, 131_072, 12_000_000} {
		x := say(t, session, fmt.Sprint(n))
		if x.Outcome != metrics.OK || len(x.Text) != n {
			t.Errorf("%d bytes: %v %q, %d came", n, x.Outcome, x.Message, len(x.Text))
		}
		if x.Latency > 3*time.Second || x.BytesIn < int64(n) {
			t.Errorf("%d bytes: %v, %d bytes in", n, x.Latency, x.BytesIn)
		}
	}
}

func TestEndlessLine(t *testing.T) {
	s := start(t, "endless", func(c *mcp.Config) { c.MaxMessage = 4 << 20 })
	session := s.session(t)
	wantOutcome(t, "endless", say(t, session, "x"), metrics.Connection, "message too large")
	wantOutcome(t, "next", say(t, session, "x"), metrics.Connection, "message too large")
	if s.Broken() == "" || s.Alive(t.Context()) {
		t.Error("link counts as alive")
	}
	if _, err := s.Restart(t.Context()); err != nil || s.Broken() != "" || s.Restarts() != 1 {
		t.Errorf("restart: %v, broken %q", err, s.Broken())
	}
}

func TestIDs(t *testing.T) {
	s := start(t, "idtype")
	session := s.session(t)
	tests := []struct {
		variant string
		want    metrics.Outcome
		message string
	}{
		{"string", metrics.ProtocolError, "reply id has type string, request had integer"},
		{"float", metrics.ProtocolError, "reply id has type number with a fraction"},
		{"null", metrics.ProtocolError, "null"},
		{"missing", metrics.ProtocolError, "missing"},
		{"nullerror", metrics.ProtocolError, "-32700: parse error"},
		{"fine", metrics.OK, ""},
	}
	for _, tc := range tests {
		x := say(t, session, tc.variant)
		wantOutcome(t, tc.variant, x, tc.want, tc.message)
		if x.Latency > time.Second {
			t.Errorf("%s: %v", tc.variant, x.Latency)
		}
	}
}

// together makes calls at once and returns them in the order of the texts.
func together(t *testing.T, session *mcp.Session, texts ...string) []metrics.Exchange {
	t.Helper()
	all := make([]metrics.Exchange, len(texts))
	var wg sync.WaitGroup
	for i, text := range texts {
		wg.Go(func() { all[i] = say(t, session, text) })
		time.Sleep(20 * time.Millisecond) // in this order at the server
	}
	wg.Wait()
	return all
}

func TestRepliesOutOfOrder(t *testing.T) {
	s := start(t, "reorder")
	session := s.session(t)
	texts := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for i, x := range together(t, session, texts...) {
		if x.Outcome != metrics.OK || x.Text != texts[i] {
			t.Errorf("%s: %v %q", texts[i], x.Outcome, x.Text)
		}
	}
	s.Alive(t.Context()) // a round trip behind the stray replies
	wantNote(t, "client", s.Notes(), "second reply to one request")
	wantNote(t, "client", s.Notes(), "reply with an id that was never sent: id 99999")
}

func TestDamagedFrames(t *testing.T) {
	s := start(t, "interleave")
	x := together(t, s.session(t), "a", "b", "whole")
	wantOutcome(t, "a", x[0], metrics.InvalidResponse, "damaged frame")
	wantOutcome(t, "b", x[1], metrics.InvalidResponse, "damaged frame")
	wantOutcome(t, "whole", x[2], metrics.OK, "")
	if x[0].Latency > time.Second {
		t.Errorf("waited %v", x[0].Latency)
	}
	cut := start(t, "cutreply")
	wantOutcome(t, "cut", say(t, cut.session(t), "x"), metrics.InvalidResponse, "damaged frame")
}

func TestBatch(t *testing.T) {
	for protocol, finding := range map[string]bool{"": true, "2025-03-26": false} {
		s := start(t, "batch", func(c *mcp.Config) { c.Protocol = protocol })
		for i, x := range together(t, s.session(t), "a", "b") {
			if x.Outcome != metrics.OK || x.Text != []string{"a", "b"}[i] {
				t.Errorf("protocol %q, call %d: %v %q", protocol, i, x.Outcome, x.Text)
			}
		}
		if got := strings.Contains(strings.Join(s.Notes(), "\n"), "a batch"); got != finding {
			t.Errorf("protocol %q: notes %q", protocol, s.Notes())
		}
	}
}

func TestVersions(t *testing.T) {
	if s := start(t, "oldversion"); s.Info().Protocol != "2024-11-05" || s.Info().Name != "fake" || s.Info().Instructions != "be kind" {
		t.Errorf("info %+v", s.Info())
	}
	cfg, _ := fakeConfig(t, "oldversion")
	cfg.Protocol = "2025-06-18"
	if _, err := mcp.Dial(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "pinned") {
		t.Errorf("pinned: %v", err)
	}
	cfg, _ = fakeConfig(t, "plain")
	cfg.Protocol = mcp.Stateless
	if _, err := mcp.Dial(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "pinned") {
		t.Errorf("pinned stateless: %v", err)
	}
}

func TestEraOnStdio(t *testing.T) {
	const short, long = 200 * time.Millisecond, 5 * time.Second
	tests := []struct {
		mode, protocol, want string
		starts               int
		probe, within        time.Duration
	}{
		{"plain", "", mcp.LatestLegacy, 1, long, 2 * time.Second},
		{"silent", "", mcp.LatestLegacy, 1, short, 2 * time.Second},
		{"silentslow", "", mcp.LatestLegacy, 1, short, 3 * time.Second},
		{"silent", "2025-06-18", "2025-06-18", 1, long, 2 * time.Second},
		{"dieondiscover", "", mcp.LatestLegacy, 2, long, 3 * time.Second},
		{"modernlate", "", mcp.Stateless, 1, short, 3 * time.Second},
		{"duallate", "", mcp.Stateless, 1, short, 3 * time.Second},
		{"dual", "", mcp.Stateless, 1, long, 2 * time.Second},
		{"dual", "2025-11-25", "2025-11-25", 1, long, 2 * time.Second},
	}
	for _, tc := range tests {
		t.Run(tc.mode+" "+tc.protocol, func(t *testing.T) {
			s := start(t, tc.mode, func(c *mcp.Config) { c.Protocol, c.ProbeTimeout = tc.protocol, tc.probe })
			if s.Info().Protocol != tc.want || s.Info().Startup > tc.within {
				t.Errorf("info %+v, want %s within %v", s.Info(), tc.want, tc.within)
			}
			if n := count(notes(t, s.journal), "start", ""); n != tc.starts {
				t.Errorf("%d starts, want %d", n, tc.starts)
			}
			wantOutcome(t, "call", say(t, s.session(t), "x"), metrics.OK, "")
		})
	}
}

func TestServerRequests(t *testing.T) {
	s := start(t, "asks")
	session := s.session(t)
	for variant, want := range map[string]string{
		"ping": "result {}", "roots/list": "error -32601", "sampling/createMessage": "error -32601",
		"elicitation/create": "error -32601", "foo/bar": "error -32601", "sameid": "result {}", "nowait": "did not wait",
	} {
		x := say(t, session, variant)
		if x.Outcome != metrics.OK || x.Text != want {
			t.Errorf("%s: %v %q, want %q", variant, x.Outcome, x.Text, want)
		}
		if variant != "nowait" && (x.ClientTime <= 0 || x.ClientTime > x.Latency) {
			t.Errorf("%s: client time %v of %v", variant, x.ClientTime, x.Latency)
		}
	}
}

func TestProgress(t *testing.T) {
	s := start(t, "progress", func(c *mcp.Config) { c.Progress = true; c.Timeout = 1500 * time.Millisecond })
	session := s.session(t)
	tests := []struct {
		variant, note string
		want          metrics.Outcome
	}{
		{"fine", "", metrics.OK},
		{"othertype", "token came back as string", metrics.OK},
		{"backwards", "did not increase: 2 after 3", metrics.OK},
		{"burst", "", metrics.OK},
		{"afterwards", "", metrics.OK},
		{"forever", "", metrics.Timeout},
	}
	for _, tc := range tests {
		x := say(t, session, tc.variant)
		wantOutcome(t, tc.variant, x, tc.want, "")
		if tc.note != "" {
			wantNote(t, tc.variant, x.Notes, tc.note)
		} else if len(x.Notes) > 0 && tc.variant != "forever" {
			t.Errorf("%s: notes %q", tc.variant, x.Notes)
		}
		if x.Latency > 1800*time.Millisecond {
			t.Errorf("%s: %v", tc.variant, x.Latency)
		}
	}
	wantNote(t, "client", s.Notes(), "progress after the reply")
	quiet := start(t, "progress")
	x := say(t, quiet.session(t), "backwards")
	wantNote(t, "no token", x.Notes, "progress")
}

func TestCrashInMidCall(t *testing.T) {
	s := start(t, "crash")
	session := s.session(t)
	for i, x := range together(t, session, "a", "b", "c") {
		wantOutcome(t, fmt.Sprint(i), x, metrics.Connection, "exit status 1")
		if x.Latency > 2*time.Second || x.Executed != metrics.Unknown || x.Delivered {
			t.Errorf("%d: %+v", i, x)
		}
	}
	if n := count(notes(t, s.journal), "got", "tools/call"); n != 3 {
		t.Errorf("%d executions, want 3", n)
	}
	x := say(t, session, "d")
	wantOutcome(t, "on a dead server", x, metrics.Connection, "exit status 1: stderr: panic: out of luck")
	if x.Executed != metrics.No {
		t.Errorf("executed %v", x.Executed)
	}
	report, err := s.Restart(t.Context())
	if err != nil || report.Exit != "exit status 1" || report.Step != "exited" {
		t.Errorf("restart: %+v, %v", report, err)
	}
	if !s.Alive(t.Context()) {
		t.Error("not alive after restart")
	}
}

func TestTimeoutAndLateReply(t *testing.T) {
	s := start(t, "hang", func(c *mcp.Config) { c.Timeout = 150 * time.Millisecond })
	session := s.session(t)
	x := say(t, session, "x")
	wantOutcome(t, "hang", x, metrics.Timeout, "")
	if x.Latency < 150*time.Millisecond || x.Latency > time.Second || x.Delivered {
		t.Errorf("%+v", x)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, cancel)
	wantOutcome(t, "cancelled", session.Call(ctx, "echo", nil, false), metrics.Cancelled, "")
	eventually(t, s.journal, "got", "notifications/cancelled", 2)
}

// A server that does not read must not hold a call beyond its limit, and the
// line it interrupts must arrive whole later.
func TestBlockedStdin(t *testing.T) {
	s := start(t, "noread", func(c *mcp.Config) { c.Timeout, c.StopGrace = 300*time.Millisecond, 3*time.Second })
	session := s.session(t)
	wantOutcome(t, "first", say(t, session, "x"), metrics.OK, "")
	began := time.Now()
	x := say(t, session, strings.Repeat("y", 300<<10)) // more than a pipe holds
	wantOutcome(t, "blocked", x, metrics.Timeout, "")
	if took := time.Since(began); took > time.Second {
		t.Errorf("held for %v", took)
	}
	eventually(t, s.journal, "got", "tools/call", 2) // the server reads again
	wantOutcome(t, "after", say(t, session, "z"), metrics.OK, "")
	if n := count(notes(t, s.journal), "garbage", ""); n != 0 {
		t.Errorf("%d damaged lines at the server", n)
	}
}

func TestToolErrors(t *testing.T) {
	s := start(t, "toolerror", func(c *mcp.Config) { c.Timeout = 200 * time.Millisecond })
	session := s.session(t)
	tests := []struct {
		variant  string
		want     metrics.Outcome
		code     int
		executed metrics.Tri
	}{
		{"-32602", metrics.ProtocolError, -32602, metrics.No},
		{"-32603", metrics.ProtocolError, -32603, metrics.Unknown},
		{"isError", metrics.ToolError, 0, metrics.Unknown},
		{"text only", metrics.OK, 0, metrics.Yes},
		{"silent", metrics.Timeout, 0, metrics.Unknown},
		{"exit", metrics.Connection, 0, metrics.Unknown},
	}
	for _, tc := range tests {
		x := say(t, session, tc.variant)
		if x.Outcome != tc.want || x.Code != tc.code || x.Executed != tc.executed {
			t.Errorf("%s: %v, code %d, executed %v", tc.variant, x.Outcome, x.Code, x.Executed)
		}
	}
}

func TestSecretsOnStdio(t *testing.T) {
	const key = "S3CRET+value"
	s := start(t, "env", func(c *mcp.Config) { c.Env = append(c.Env, wire.EnvVar{Name: "SECRET_KEY", Value: key}) })
	x := say(t, s.session(t), "x")
	wantOutcome(t, "env", x, metrics.ToolError, "key is [redacted]")
	var tail string
	for range 200 { // the drain runs beside the call
		if tail, _ = s.Stderr(); strings.Contains(tail, "SECRET_KEY=") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if strings.Contains(tail, "S3CRET") || !strings.Contains(tail, "SECRET_KEY=") {
		t.Errorf("stderr: %q", tail)
	}
}

func TestManyServersStopSideBySide(t *testing.T) {
	var all []*server
	for range 8 {
		all = append(all, start(t, "stubborn", func(c *mcp.Config) { c.StopGrace = 300 * time.Millisecond }))
	}
	began := time.Now()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() { s.Close(context.Background()) })
	}
	wg.Wait()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("8 stubborn servers took %v to end", took)
	}
}

// A server that is stuck in a call answers no ping either; it is replaced.
func TestStuckServer(t *testing.T) {
	s := start(t, "stuck", func(c *mcp.Config) { c.Timeout, c.StopGrace = 200*time.Millisecond, 200*time.Millisecond })
	session := s.session(t)
	wantOutcome(t, "stuck", say(t, session, "x"), metrics.Timeout, "")
	if s.Alive(t.Context()) {
		t.Fatal("alive")
	}
	var wg sync.WaitGroup
	for range 4 { // who share one restart
		wg.Go(func() {
			if _, err := s.Restart(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if !s.Alive(t.Context()) || s.Restarts() != 1 {
		t.Errorf("alive %v after %d restarts", s.Alive(t.Context()), s.Restarts())
	}
	if n := count(notes(t, s.journal), "start", ""); n != 2 {
		t.Errorf("%d starts", n)
	}
}

func TestSecretsOfOursAreWithheld(t *testing.T) {
	t.Setenv("ORDEAL_PLAIN", "plain")
	t.Setenv("ORDEAL_TEST_API_KEY", "ours")
	t.Setenv("ORDEAL_GIVEN_TOKEN", "ours")
	s := start(t, "getenv", func(c *mcp.Config) {
		c.Env = append(c.Env, wire.EnvVar{Name: "ORDEAL_GIVEN_TOKEN", Value: "theirs"})
	})
	session := s.session(t)
	for name, want := range map[string]string{"ORDEAL_PLAIN": "plain", "ORDEAL_TEST_API_KEY": "", "ORDEAL_GIVEN_TOKEN": "theirs"} {
		if x := say(t, session, name); x.Text != want {
			t.Errorf("%s = %q, want %q", name, x.Text, want)
		}
	}
	cfg, _ := fakeConfig(t, "exit3")
	if _, err := mcp.Dial(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "not given ") || !strings.Contains(err.Error(), "ORDEAL_TEST_API_KEY") {
		t.Errorf("remedy: %v", err)
	}
}

func TestDialIsCancelled(t *testing.T) {
	cfg, _ := fakeConfig(t, "neverstart")
	cfg.StopGrace = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	began := time.Now()
	if _, err := mcp.Dial(ctx, cfg); !errors.Is(err, context.Canceled) || time.Since(began) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// TestKillAll: a process that leaves at once takes its servers with it.
func TestKillAll(t *testing.T) {
	s := start(t, "plain")
	mcp.KillAll()
	deadline := time.Now().Add(5 * time.Second)
	for s.Broken() == "" && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if report := s.Close(t.Context()); report.Exit != "signal: killed" {
		t.Errorf("report %+v, want the server killed", report)
	}
}
