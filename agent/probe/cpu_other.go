//go:build !unix

package probe

import "time"

// CPUTime is not known here; a CPU share then reads 0.
func CPUTime() time.Duration { return 0 }
