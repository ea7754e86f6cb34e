package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"bench-peers/tape"

	"golang.org/x/sys/unix"
)

// run is what one generator did in one repetition: a row of the raw results. CPU
// times are in seconds, of the client process alone and from its start to its end;
// the steady part is what the tape and the process's clock say of the middle of it.
type run struct {
	Experiment string    `json:"experiment"`
	Peer       string    `json:"peer"`
	Rep        int       `json:"rep"`
	Args       []string  `json:"args"`
	Said       said      `json:"said"`
	Arrived    int64     `json:"arrived"` // tool calls at the server
	WallS      float64   `json:"wall_s"`  // of the process
	CPUS       float64   `json:"cpu_s"`
	Steady     steady    `json:"steady"`
	ServerCPUS float64   `json:"server_cpu_s"`
	PeakBytes  int64     `json:"peak_bytes"`
	Arrivals   *evenness `json:"arrivals,omitempty"`
	Others     float64   `json:"others"` // share of the machine that neither side used
	Loud       bool      `json:"loud,omitempty"`
	Failed     string    `json:"failed,omitempty"` // why the row counts for nothing
}

func (r run) key() string { return r.Experiment + "/" + r.Peer }

// perCall is the client's CPU time of a call, in seconds.
func (r run) perCall() float64 { return r.CPUS / float64(r.Said.Calls) }

// measure starts a server, has one generator drive it, and stops it.
func (b *bench) measure(ctx context.Context, e experiment, p peer, rep int) run {
	r := run{Experiment: e.name, Peer: p.name, Rep: rep}
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = b.drive(ctx, e, p, dir, &r)
	}
	if err != nil {
		r.Failed = err.Error()
	}
	return r
}

func (b *bench) drive(ctx context.Context, e experiment, p peer, dir string, r *run) error {
	path := dir + "/tape"
	room := 0
	if e.job.rate > 0 {
		room = 1_000_000
	}
	calls, err := tape.Create(path, room)
	if err != nil {
		return err
	}
	defer calls.Close()
	j := e.job
	j.dir = dir
	server := append([]string{b.tools.bin("server"), "-mode", e.server, "-tape", path}, e.flags...)
	if e.stdio() {
		j.stdio = pinned(serverCPU, server)
	} else {
		t, err := startServer(server)
		if err != nil {
			return err
		}
		defer t.stop()
		j.url = t.url
		if err := t.warm(ctx, e.session(), calls); err != nil {
			return err
		}
		if e.session() && !p.opens {
			if j.session, err = openSession(ctx, t.url); err != nil {
				return err
			}
		}
	}
	out, err := watch(ctx, p.command(j), calls, j, r)
	if err != nil {
		return err
	}
	return b.judge(e, p, j, out, calls, r)
}

// watch runs the client to its end and measures it from outside.
func watch(ctx context.Context, c command, calls *tape.Tape, j job, r *run) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, j.length+time.Duration(j.calls)*100*time.Microsecond+30*time.Second)
	defer cancel()
	args := pinned(clientCPU, c.args)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Stdin = append(os.Environ(), c.env...), c.stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with a stdio server
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	r.Args = c.args

	machine, own, server, began := machineClock(), ownClock(), calls.Used(), time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := sampler{pid: cmd.Process.Pid, calls: calls, length: j.length, ended: make(chan struct{})}
	sampled := make(chan struct{})
	go func() { defer close(sampled); s.loop() }()
	cpu := awaitEnd(cmd.Process.Pid)
	wall := time.Since(began)
	close(s.ended)
	<-sampled
	err := cmd.Wait()
	used := calls.Used() - server
	r.WallS, r.CPUS, r.ServerCPUS = wall.Seconds(), cpu.Seconds(), used.Seconds()
	r.Steady, r.PeakBytes, r.Arrived = s.steady(), s.peak, calls.Calls()
	r.Others = others(machineClock()-machine, cpu+used+ownClock()-own, wall)
	r.Loud = r.Others > loudAbove
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", c.args[0], err, tail(stderr.Bytes(), stdout.Bytes()))
	}
	return stdout.Bytes(), nil
}

// awaitEnd returns the CPU time of a child that has ended and is not yet reaped: its
// own alone, where wait4 would add the stdio server that it started.
func awaitEnd(pid int) time.Duration {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	return processClock(pid)
}

// judge reads what the generator said and refuses the run if the server knows better.
func (b *bench) judge(e experiment, p peer, j job, out []byte, calls *tape.Tape, r *run) (err error) {
	if p.said == nil {
		return nil
	}
	if r.Said, err = p.said(j, out); err != nil {
		return err
	}
	s := r.Said
	switch {
	case s.Calls == 0:
		return fmt.Errorf("no call was made")
	case s.Calls > r.Arrived:
		return fmt.Errorf("says %d calls, the server saw %d", s.Calls, r.Arrived)
	case s.Errors*1000 > s.Calls:
		return fmt.Errorf("%d of %d calls failed", s.Errors, s.Calls)
	}
	if e.job.rate > 0 {
		arrivals := calls.Arrivals()
		// What came before the load is a check of the target.
		r.Arrivals = even(arrivals[max(0, len(arrivals)-int(s.Calls)):], e.job.rate, e.job.length)
	}
	return nil
}

// tail is the end of what a command said, in one line.
func tail(outputs ...[]byte) string {
	all := bytes.Join(bytes.Fields(bytes.Join(outputs, []byte("\n"))), []byte(" "))
	return string(all[max(0, len(all)-300):])
}
