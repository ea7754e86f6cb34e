package agent

import (
	"fmt"
	"math"
)

// What a caller costs its agent at most, by BenchmarkCaller, and what the agent
// itself needs beside all callers.
const (
	// perCaller is memory in bytes: session, connection, stack and counters.
	// Measured: 91 KiB at 200 callers, 82 KiB at 1,000; TLS adds some 40.
	perCaller = 160 << 10
	ownMemory = 64 << 20
	// filesPerCaller are open files. A caller over HTTP has one connection; while
	// many open theirs at once some get a second one. Measured: 1.0 at 200 callers,
	// 1.5 at 1,000. A server on stdio costs three pipes, which its callers share.
	filesPerCaller = 2
	ownFiles       = 128
)

// room is what a process may use; unlimited where nothing limits it.
type room struct {
	files    int64 // open at once
	memory   int64 // bytes, beside what is used already
	memoryOf string
}

const unlimited = math.MaxInt64

// fit is the capacity an agent may promise on this machine: what was wanted, or
// an error that says what to change; 0 wants as much as there is room for, up to
// DefaultCapacity.
func fit(wanted int) (int, error) {
	files, err := openFileLimit()
	if err != nil {
		return 0, fmt.Errorf("find out how many files may be open: %w", err)
	}
	r := room{files: files}
	r.memory, r.memoryOf = memoryLeft()
	return r.fit(wanted)
}

func (r room) fit(wanted int) (int, error) {
	byFiles, byMemory := (r.files-ownFiles)/filesPerCaller, (r.memory-ownMemory)/perCaller
	most := int(max(0, min(byFiles, byMemory, math.MaxInt32)))
	if wanted == 0 {
		return max(1, min(most, DefaultCapacity)), nil
	}
	if wanted < 0 {
		return 0, fmt.Errorf("capacity %d: want the callers to hold at once, 1 or more", wanted)
	}
	n := int64(wanted)
	switch {
	case n > byFiles:
		need := n*filesPerCaller + ownFiles
		return 0, fmt.Errorf("capacity %d needs %d open files and the limit is %d: raise it (ulimit -n %d, or LimitNOFILE=%d of the service), or lower --capacity (without a fleet --concurrency) to %d",
			wanted, need, r.files, need, need, most)
	case n > byMemory:
		return 0, fmt.Errorf("capacity %d needs %d MiB of memory and %s leaves %d MiB: raise it, or lower --capacity (without a fleet --concurrency) to %d",
			wanted, (n*perCaller+ownMemory)>>20, r.memoryOf, max(0, r.memory)>>20, most)
	}
	return wanted, nil
}
