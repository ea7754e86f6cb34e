package cli

import (
	"os"
	"runtime/debug"
)

// gcPercent lets the heap grow to five times what is live before it is collected:
// what is live here is some megabytes, and a load generator that collects garbage
// many times a second measures itself.
const gcPercent = 400

// TuneGC sets how often the process collects garbage, unless GOGC does.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
