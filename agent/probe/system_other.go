//go:build !linux

package probe

import (
	"math"
	"runtime"
	"time"
)

// usableCores is how many cores this process may use, as far as the runtime knows.
func usableCores() float64 { return float64(runtime.GOMAXPROCS(0)) }

// groupMemory knows of no limit here.
func groupMemory() int64 { return math.MaxInt64 }

// runQueueWait is not told here.
func runQueueWait() time.Duration { return 0 }
