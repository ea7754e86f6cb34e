package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/llm/llmtest"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// agentVar makes the test binary an agent of the fleet at the given address.
const agentVar = "ORDEAL_TEST_AGENT"

func TestMain(m *testing.M) {
	if url := os.Getenv(agentVar); url != "" {
		os.Exit(agentMain(url))
	}
	if os.Getenv(targetVar) != "" {
		os.Exit(targetMain())
	}
	os.Exit(m.Run())
}

func agentMain(url string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	b, err := bus.Connect(ctx, bus.Link{URLs: url, Name: "agent", Agent: "a1"})
	if err == nil {
		defer b.Close()
		err = Run(ctx, b, Options{ID: "a1", Version: "test"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process starts an agent of its own process and ends it with the test.
func process(t *testing.T, url string) *os.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), agentVar+"="+url)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill() // it may be gone
		_ = cmd.Wait()
	})
	return cmd.Process
}

// An agent that was stopped as a whole, by a debugger, a hypervisor or a job
// control signal, does not go on with what it had in hand when its lease is over:
// its workers wake up with the answers to their calls, and make no further one.
func TestWokenAgentSendsNothing(t *testing.T) {
	const ttl, workers, warm = 900 * time.Millisecond, 8, 50
	w := onServer(t, startServer(t, &server.Options{Host: "127.0.0.1", Port: -1, MaxPayload: wire.MaxPayload}))
	w.boss.change(func(b *boss) { b.grant.TTL = ttl })
	answer := make(chan struct{})
	s := llmtest.New(t, func(r llmtest.Request) llmtest.Answer {
		if r.N >= warm {
			<-answer
		}
		return llmtest.Answer{}
	})
	agent := process(t, w.srv.ClientURL())
	w.publish(chatUnit("u1", s.URL, workers, endless))
	eventually(t, "a call of every worker", func() bool { _, n := lastCall(s); return n == warm+workers })
	if err := agent.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.boss.change(func(b *boss) { b.mute = true })
	close(answer)
	_, before := settledCalls(s)
	time.Sleep(ttl) // the lease runs out while nobody is there to see it
	woken := time.Now()
	if err := agent.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if e := w.event(wire.Returned); e.Unit != "u1" {
		t.Errorf("event %+v, want the unit returned", e)
	}
	time.Sleep(100 * time.Millisecond) // for what might come all the same
	if at, n := lastCall(s); n != before {
		t.Errorf("%d calls after the end of the lease, the last one %v after it woke", n-before, at.Sub(woken))
	}
}

// settledCalls waits until what was on its way has arrived.
func settledCalls(s *llmtest.Server) (at time.Time, calls int) {
	for {
		at, calls = lastCall(s)
		time.Sleep(100 * time.Millisecond)
		if _, now := lastCall(s); now == calls {
			return at, calls
		}
	}
}
