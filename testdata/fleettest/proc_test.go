package fleettest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// within bounds a step of a test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func shell(t *testing.T, script string) *Proc {
	t.Helper()
	return startProc(t, "sh", exec.Command("sh", "-c", script))
}

func TestProcEnds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		script string
		do     func(*Proc)
		code   int
	}{
		{"by itself", "echo up >&2; exit 7", func(*Proc) {}, 7},
		{"killed", "echo up >&2; exec sleep 60", (*Proc).Kill, 128 + 9},
		{"killed while paused", "echo up >&2; exec sleep 60", func(p *Proc) { p.Pause(); p.Kill() }, 128 + 9},
		{"on SIGTERM", "trap 'exit 3' TERM; echo up >&2; while :; do sleep 0.02; done", (*Proc).Term, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := shell(t, tc.script)
			if _, err := p.WaitStderr(within(t, 5*time.Second), "up"); err != nil {
				t.Fatal(err)
			}
			tc.do(p)
			code, err := p.Wait(within(t, 5*time.Second))
			if code != tc.code || err != nil || p.Running() {
				t.Errorf("code %d, %v, running %v; want %d", code, err, p.Running(), tc.code)
			}
			p.Kill() // and once more does nothing
		})
	}
}

func TestPauseAndResume(t *testing.T) {
	p := shell(t, "echo up >&2; while :; do echo on; sleep 0.01; done")
	if _, err := p.WaitStderr(within(t, 5*time.Second), "up"); err != nil {
		t.Fatal(err)
	}
	p.Pause()
	p.Pause() // twice is once
	if got := procState(t, p.Pid()); got != "T" {
		t.Errorf("state %s after Pause, want T", got)
	}
	before := p.Stdout()
	p.Resume()
	more := func() (string, error) { return p.stdout.wait(within(t, 5*time.Second), "on", p.ended) }
	for deadline := time.Now().Add(5 * time.Second); len(p.Stdout()) <= len(before); {
		if _, err := more(); err != nil || time.Now().After(deadline) {
			t.Fatalf("wrote nothing after Resume: %v", err)
		}
	}
}

// procState is the state letter of a process: R, S, T, Z, …; none if it is gone.
func procState(t *testing.T, pid int) string {
	t.Helper()
	fields := procStat(t, pid)
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// procStat is what proc_pid_stat(5) has from its third field on.
func procStat(t *testing.T, pid int) []string {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.Fields(after)
}

// A child that stays in the group ends with its parent, and what it holds open
// does not keep Kill waiting.
func TestKillTakesTheGroup(t *testing.T) {
	p := shell(t, "sleep 60 & echo child $! >&2; wait")
	line, err := p.WaitStderr(within(t, 5*time.Second), "child ")
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimPrefix(line, "child "))
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	for ctx := within(t, 5*time.Second); ; time.Sleep(time.Millisecond) {
		state := procState(t, child)
		if state == "Z" || state == "" { // init reaps orphans when it likes
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("child %d lives, state %s", child, state)
		}
	}
}

func TestWaitStderrSaysWhatThereWas(t *testing.T) {
	p := shell(t, "echo no such server >&2")
	_, err := p.WaitStderr(within(t, 5*time.Second), "ready")
	if err == nil || !strings.Contains(err.Error(), "no such server") || !strings.Contains(err.Error(), `"ready"`) {
		t.Errorf("err %v, want what was waited for and what came", err)
	}
}
