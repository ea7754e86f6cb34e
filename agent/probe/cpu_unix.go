//go:build unix

package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime is the CPU time this process has used, user and system.
func CPUTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
