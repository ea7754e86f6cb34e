package fleettest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pipeWait bounds how long a dead process's output is read while a child of its
// holds the other end.
const pipeWait = 2 * time.Second

// Proc is a process of its own, in a process group of its own.
type Proc struct {
	name           string
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{} // closed once code is there and all output read
	code           int

	mu   sync.Mutex
	dead bool // soon its id may be another's
}

// startProc starts cmd. It is killed with its group when the test ends, or with
// the test process.
func startProc(t testing.TB, name string, cmd *exec.Cmd) *Proc {
	t.Helper()
	p := newProc(name, cmd)
	if err := p.start(); err != nil {
		t.Fatalf("fleettest: start %s: %v", name, err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			p.report(t)
		}
	})
	return p
}

func newProc(name string, cmd *exec.Cmd) *Proc {
	p := &Proc{name: name, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &p.stdout, &p.stderr, pipeWait
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return p
}

func (p *Proc) start() error {
	started := make(chan error)
	go p.run(started)
	return <-started
}

// run keeps its thread for as long as the process lives: the parent whose death
// the kernel tells the child of is the thread that started it. What is left of
// the group ends with the process, while its id is still its own.
func (p *Proc) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.ended)
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	for unix.Waitid(unix.P_PID, p.Pid(), nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.signalGroup(syscall.SIGKILL)
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	_ = p.cmd.Wait() // what it says of the exit is in the state too
	p.code = exitCode(p.cmd.ProcessState)
}

// exitCode is the shell's: 128 + N for a process that signal N ended.
func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// Pid is the process's id, and its group's.
func (p *Proc) Pid() int { return p.cmd.Process.Pid }

// Stdout is what the process has written so far.
func (p *Proc) Stdout() string { return p.stdout.String() }

// Stderr is what the process has written so far.
func (p *Proc) Stderr() string { return p.stderr.String() }

// Running says whether the process has not ended; a paused one runs.
func (p *Proc) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Wait returns the exit code, 128 + N for death by signal N, or an error with
// the end of stderr when ctx ends first.
func (p *Proc) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.ended:
		return p.code, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%s (pid %d) still runs: %w\n%s", p.name, p.Pid(), context.Cause(ctx), p.stderr.tail())
	}
}

// WaitStderr returns the first line of stderr that holds text, or an error when
// ctx or the process ends without one.
func (p *Proc) WaitStderr(ctx context.Context, text string) (string, error) {
	line, err := p.stderr.wait(ctx, text, p.ended)
	if err != nil {
		return "", fmt.Errorf("%s: stderr: %w\n%s", p.name, err, p.stderr.tail())
	}
	return line, nil
}

// Kill ends the whole group with SIGKILL and returns when the process is gone.
func (p *Proc) Kill() {
	p.signalGroup(syscall.SIGKILL)
	<-p.ended
}

// Term sends SIGTERM to the process alone, as kill(1) and Kubernetes do, and
// does not wait.
func (p *Proc) Term() { p.signal(syscall.SIGTERM) }

// Pause stops the process with SIGSTOP and returns when it stands still. Its
// children go on: one that is stopped between vfork and exec would keep the
// process from ever coming to a stop.
func (p *Proc) Pause() {
	p.signal(syscall.SIGSTOP)
	for p.Running() {
		// WNOWAIT leaves the report of the stop for the next Pause of a process
		// that stands already. ECHILD: it has ended instead.
		if err := unix.Waitid(unix.P_PID, p.Pid(), nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}

// Resume lets a paused process go on.
func (p *Proc) Resume() { p.signal(syscall.SIGCONT) }

// Neither signal does anything to a process that has ended.

func (p *Proc) signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) }

func (p *Proc) signalGroup(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		_ = syscall.Kill(-p.Pid(), sig)
	}
}

// report prints how the process ended and the end of its logs.
func (p *Proc) report(t testing.TB) {
	t.Helper()
	t.Logf("%s (pid %d), exit code %d\n--- stdout\n%s\n--- stderr\n%s", p.name, p.Pid(), p.code, p.stdout.tail(), p.stderr.tail())
}
