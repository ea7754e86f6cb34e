package main

import (
	"strings"
	"testing"
	"time"

	"ordeal/cmd/internal/cli"
	"ordeal/testdata/fleettest"
)

// restartWait is within what an agent that follows a killed one of its name is
// ready, on a machine full of other tests.
const restartWait = 2 * time.Second

// A second agent of a name is refused while the first is alive, and says what to
// do. Once that is killed the next one is let in at once, and works.
func TestFaultSecondAgentOfAName(t *testing.T) {
	w := newWorld(t, "a")
	second := fleettest.AgentUnready(t, w.url, "a")
	code, err := second.Wait(within(t, faultWait))
	_, said, _ := strings.Cut(second.Stderr(), "\nerror: ")
	if code != cli.Unmeasured || err != nil || !strings.Contains(said, "another agent called a is at work") || !strings.Contains(said, "--name") || strings.Contains(strings.TrimSpace(said), "\n") {
		t.Errorf("exit code %d, %v, stderr:\n%s\nwant %d and one line that says what to do", code, err, second.Stderr(), cli.Unmeasured)
	}
	for range 3 {
		w.agents["a"].Kill()
		killed := time.Now()
		w.join("a", w.url)
		if took := time.Since(killed); took > restartWait {
			t.Errorf("ready %v after the kill, want within %v", took, restartWait)
		}
	}
	doc := w.report(w.scan(mockScanArgs...))
	row{"second agent of a name; the first killed and followed", "", "refused, and told what to do; the next one is ready at once", sameAsWhole(t, mockScanArgs, doc)}.note(t)
}

// Two agents of one name that are both alive, since one of them stood still while
// the other was let in, get no work of a gang: the one that was away goes, and the
// other works on.
func TestFaultPausedAgentIsFollowed(t *testing.T) {
	w := newWorld(t, "a")
	old := w.agents["a"]
	old.Pause()
	w.join("a", w.url)
	time.Sleep(3 * time.Second) // longer than two heartbeats
	old.Resume()
	code, err := old.Wait(within(t, faultWait))
	if code != cli.Unmeasured || err != nil || !strings.Contains(old.Stderr(), "another agent called a is at work") {
		t.Errorf("exit code %d, %v, stderr:\n%s\nwant %d and that the other is at work", code, err, old.Stderr(), cli.Unmeasured)
	}
	doc := w.report(w.scan(mockScanArgs...))
	row{"agent stopped, followed by another of its name, woken", "", "the one that was away leaves", sameAsWhole(t, mockScanArgs, doc)}.note(t)
}
