package fleettest

import (
	"strconv"
	"testing"
	"time"
)

// Each hog burns CPU time of its own, of which a busy machine gives it little.
func TestHogsBurn(t *testing.T) {
	const enough = 5 // ticks of 10ms
	hogs := startHogs(t, 2)
	ctx := within(t, 10*time.Second)
	for _, p := range hogs {
		for ticks := 0; ticks < enough; time.Sleep(10 * time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatalf("%s has used %d ticks", p.name, ticks)
			}
			stat := procStat(t, p.Pid())
			var err error
			if ticks, err = strconv.Atoi(stat[14-3]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestHogsStop(t *testing.T) {
	stop := HogCPU(t, 2)
	stop()
	stop()
}
