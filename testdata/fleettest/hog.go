package fleettest

import (
	"fmt"
	"os/exec"
	"sync"
	"testing"
)

// hogSeconds bounds each hog in seconds of CPU time, should all else fail to
// end it.
const hogSeconds = 120

// HogCPU keeps n cores busy with processes of their own, until stop or the end
// of the test.
func HogCPU(t testing.TB, n int) (stop func()) {
	t.Helper()
	hogs := startHogs(t, n)
	return sync.OnceFunc(func() {
		for _, p := range hogs {
			p.Kill()
		}
	})
}

func startHogs(t testing.TB, n int) []*Proc {
	t.Helper()
	hogs := make([]*Proc, n)
	for i := range hogs {
		script := fmt.Sprintf("ulimit -t %d; while :; do :; done", hogSeconds)
		hogs[i] = startProc(t, fmt.Sprintf("hog %d", i+1), exec.Command("sh", "-c", script))
	}
	return hogs
}
