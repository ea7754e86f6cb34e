package mcp

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"ordeal/agent/secret"
)

// process is a server on stdio: its pipes, its group, its end.
type process struct {
	cmd     *exec.Cmd
	stdin   *os.File
	stdout  *os.File
	errOut  *os.File
	stderr  ring
	ended   chan struct{} // closed when the process has been waited for
	drained chan struct{} // closed when stderr has been read to its end
	wg      sync.WaitGroup
	stop    sync.Once

	withheld []string // names of variables of ours the process was not given
	report   ShutdownReport
}

// ShutdownReport says what it took to end a server process. Links without a
// process leave Step empty.
type ShutdownReport struct {
	Step string        // exited, stdin, sigterm, sigkill, or survived
	Exit string        // exit status or signal
	Took time.Duration // never part of a latency
}

// drainGrace is how long output may still come after the process has ended,
// from a child that holds the pipe.
const drainGrace = 500 * time.Millisecond

// startProcess runs the command in a group of its own, all pipes attached. The
// pipes are files of ours, so waiting for the process waits for nothing else.
func startProcess(cfg *Config) (*process, error) {
	p := &process{ended: make(chan struct{}), drained: make(chan struct{}), cmd: exec.Command(cfg.Command[0], cfg.Command[1:]...)}
	p.cmd.Dir = cfg.Dir
	p.cmd.Env, p.withheld = inherited(os.Environ())
	for _, v := range cfg.Env {
		p.cmd.Env = append(p.cmd.Env, v.Name+"="+v.Value)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	theirs, err := p.pipes()
	if err != nil {
		return nil, err
	}
	err = p.cmd.Start()
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		p.closePipes()
		return nil, err
	}
	p.wg.Go(func() { p.stderr.drain(p.errOut); close(p.drained) })
	p.wg.Go(p.wait)
	groups.Store(p.pgid(), nil)
	return p, nil
}

// inherited leaves out what sounds like a secret of ours: a server gets those it
// is configured to get.
func inherited(environ []string) (handed, withheld []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if secret.Telling(name) {
			withheld = append(withheld, name)
		} else {
			handed = append(handed, v)
		}
	}
	return handed, withheld
}

// pipes opens three pipes and returns the ends of the child.
func (p *process) pipes() ([]*os.File, error) {
	var theirs []*os.File
	pipe := func(ours **os.File, child func(*os.File), weRead bool) error {
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("pipe: %w", err)
		}
		if !weRead {
			r, w = w, r
		}
		*ours = r
		child(w)
		theirs = append(theirs, w)
		return nil
	}
	err := pipe(&p.stdin, func(f *os.File) { p.cmd.Stdin = f }, false)
	if err == nil {
		err = pipe(&p.stdout, func(f *os.File) { p.cmd.Stdout = f }, true)
	}
	if err == nil {
		err = pipe(&p.errOut, func(f *os.File) { p.cmd.Stderr = f }, true)
	}
	if err != nil {
		p.closePipes()
		for _, f := range theirs {
			f.Close()
		}
	}
	return theirs, err
}

func (p *process) closePipes() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.errOut} {
		if f != nil {
			f.Close()
		}
	}
}

func (p *process) wait() {
	_ = p.cmd.Wait() // the state says how it ended
	limit := time.Now().Add(drainGrace)
	_ = p.stdout.SetReadDeadline(limit)
	_ = p.errOut.SetReadDeadline(limit)
	close(p.ended)
}

func (p *process) pgid() int { return p.cmd.Process.Pid }

// exit describes how the process ended; empty while it runs.
func (p *process) exit() string {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// settle gives what an ended process wrote to stderr a moment to arrive: it may
// still be in the pipe.
func (p *process) settle() {
	select {
	case <-p.drained:
	case <-time.After(drainGrace):
	}
}

// lastWords is what stderr says of the end, for a message, unredacted.
func (p *process) lastWords() string {
	p.settle()
	return tellingLine(p.stderr.tail(stderrKept))
}

// tellingLine is the line that says why a process ended: that of a Go panic,
// which stands above its goroutines, else the last one, where Python and most
// others put it.
func tellingLine(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
	}
	return lines[len(lines)-1]
}

// shutDown ends the group: stdin closed, SIGTERM, SIGKILL, at most grace after
// each. It returns when nothing of it is left, or after the last step.
func (p *process) shutDown(grace time.Duration) ShutdownReport {
	p.stop.Do(func() {
		began := time.Now()
		p.report.Step = p.escalate(grace)
		p.report.Took = time.Since(began)
		groups.Delete(p.pgid())
		p.stdout.Close()
		p.errOut.Close()
		p.wg.Wait()
		p.report.Exit = p.exit()
	})
	return p.report
}

func (p *process) escalate(grace time.Duration) string {
	step := "stdin"
	if p.exit() != "" {
		step = "exited"
	}
	p.stdin.Close()
	if p.gone(grace) {
		return step
	}
	signalGroup(p.pgid(), syscall.SIGTERM)
	if p.gone(grace) {
		return "sigterm"
	}
	signalGroup(p.pgid(), syscall.SIGKILL)
	if p.gone(grace) {
		return "sigkill"
	}
	return "survived"
}

// gone waits for the process and then for the rest of its group.
func (p *process) gone(limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		return awaitGroup(p.pgid(), time.Until(deadline))
	case <-timer.C:
		return false
	}
}
