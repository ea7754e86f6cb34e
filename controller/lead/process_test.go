package lead

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// asController, in the environment, makes this test binary a controller of run
// r1 on the servers it names, until it has lost its lead.
const asController = "ORDEAL_TEST_CONTROLLER"

func controllerMain(url string) int {
	ctx := context.Background()
	b, err := bus.Connect(ctx, bus.Link{URLs: url, Name: "controller"})
	if err == nil {
		var l *Leader
		if l, err = Create(ctx, Options{Bus: b, Record: record("r1"), TTL: MinTTL}); err == nil {
			fmt.Println("leads")
			<-l.Lost()
			err = l.Err()
		}
	}
	fmt.Println(err)
	return 0
}

// startController runs one as a process of its own.
func startController(t *testing.T, url string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asController+"="+url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "leads\n" {
		rest, _ := io.ReadAll(lines)
		t.Fatalf("controller: %s%s, %v", line, rest, err)
	}
	return cmd, lines
}

// listen starts a server with a port; 0 chooses one.
func listen(t *testing.T, port int, dir string) *server.Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true, JetStream: true, StoreDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	return srv
}

func dial(t *testing.T, url string) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Link{URLs: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// listening is a server with a port and a connection to it.
func listening(t *testing.T) (url string, b *bus.Bus) {
	t.Helper()
	forgetTimers()
	url = listen(t, server.RANDOM_PORT, t.TempDir()).ClientURL()
	b = dial(t, url)
	if err := b.Setup(t.Context(), bus.Files); err != nil {
		t.Fatal(err)
	}
	return url, b
}

// Behind a restart of the server a controller is away for the moment that its
// reconnect takes.
func TestReconnectingControllerIsNotTakenForGone(t *testing.T) {
	forgetTimers()
	dir := t.TempDir()
	srv := listen(t, server.RANDOM_PORT, dir)
	url, port := srv.ClientURL(), srv.Addr().(*net.TCPAddr).Port
	b := dial(t, url)
	if err := b.Setup(t.Context(), bus.Files); err != nil {
		t.Fatal(err)
	}
	l, err := Create(t.Context(), Options{Bus: b, Record: record("r1")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	srv.Shutdown()
	srv.WaitForShutdown()
	listen(t, port, dir)
	other := dial(t, url)
	if _, err := other.SendOrder(t.Context(), "r1", wire.Order{Kind: wire.OrderWho}); !errors.Is(err, bus.ErrGone) {
		t.Fatalf("err %v: the controller was back too soon, the test tests nothing", err)
	}
	if _, _, err := Take(t.Context(), "r1", Options{Bus: other}); !errors.As(err, new(*Led)) {
		t.Errorf("err %v, want %T", err, &Led{})
	}
}

func TestKilledProcessIsReplacedAtOnce(t *testing.T) {
	url, b := listening(t)
	cmd, _ := startController(t, url)
	if _, _, err := Take(t.Context(), "r1", Options{Bus: b}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", cmd.Process.Pid)) {
		t.Errorf("err %v, want the process that leads", err)
	}
	begun := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	l, _, err := Take(t.Context(), "r1", Options{Bus: b})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if took := time.Since(begun); l.Generation() != 2 || l.Inherited().IsZero() || took > 2*time.Second {
		t.Errorf("generation %d after %v", l.Generation(), took)
	}
}

// A process that is stopped does not know. When it wakes it answers none of the
// requests that have waited for it, and learns that it was replaced.
func TestStoppedProcessWakesUpFenced(t *testing.T) {
	url, b := listening(t)
	cmd, lines := startController(t, url)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus // it may answer until it has stopped
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("status %x, %v; want it stopped", status, err)
	}
	begun := time.Now()
	l, _, err := Take(t.Context(), "r1", Options{Bus: b})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if took := time.Since(begun); l.Generation() != 2 || took < MinTTL || took > MinTTL+margin+2*time.Second {
		t.Errorf("generation %d after %v", l.Generation(), took)
	}
	// Requests that both hear; the first answer counts.
	waiting := make(chan wire.Grant, 10)
	for range cap(waiting) {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), wire.AskWait)
			defer cancel()
			g, _ := b.AskLease(ctx, "r1", wire.Ask{Agent: "a1"})
			waiting <- g
		}()
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, bus.ErrFenced.Error()) || !strings.Contains(line, "generation 2") {
		t.Errorf("the woken process says %q, %v", line, err)
	}
	for range cap(waiting) {
		if g := <-waiting; g.Generation != 2 {
			t.Errorf("grant %+v, want one of generation 2", g)
		}
	}
	if _, _, err := Take(t.Context(), "r1", Options{Bus: b}); !errors.As(err, new(*Led)) {
		t.Errorf("err %v, want %T", err, &Led{})
	}
}
