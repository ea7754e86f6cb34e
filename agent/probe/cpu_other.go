//go:build !unix

package probe

import "time"

// cpuTime is not known here; the generator's CPU share then reads 0.
func cpuTime() time.Duration { return 0 }
