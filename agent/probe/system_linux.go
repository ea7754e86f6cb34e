package probe

import (
	"bytes"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usableCores is how many cores this process may use: by its threads, its affinity
// and the quotas of its control groups.
func usableCores() float64 {
	n := float64(runtime.GOMAXPROCS(0))
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil && set.Count() > 0 {
		n = min(n, float64(set.Count()))
	}
	for _, text := range controlGroups("cpu.max") {
		// "max 100000", or the µs of CPU in each of so many µs
		quota, period, _ := strings.Cut(text, " ")
		q, err := strconv.ParseFloat(quota, 64)
		p, errPeriod := strconv.ParseFloat(period, 64)
		if err == nil && errPeriod == nil && q > 0 && p > 0 {
			n = min(n, q/p)
		}
	}
	return n
}

// groupMemory is the least limit of the process's control groups, in bytes.
func groupMemory() int64 {
	least := int64(math.MaxInt64)
	for _, text := range controlGroups("memory.max") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 { // else "max"
			least = min(least, n)
		}
	}
	return least
}

// controlGroups reads a file of the process's control group and of all above it,
// version 2.
func controlGroups(file string) (texts []string) {
	const root = "/sys/fs/cgroup"
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	_, group, ok := strings.Cut("\n"+string(own), "\n0::")
	if !ok {
		return nil
	}
	group, _, _ = strings.Cut(group, "\n")
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		if text, err := os.ReadFile(root + path.Join(dir, file)); err == nil {
			texts = append(texts, strings.TrimSpace(string(text)))
		}
		if dir == "/" {
			return texts
		}
	}
}

// runQueueWait is how long threads of this process that still exist were ready to
// run and had to wait for a CPU.
func runQueueWait() (sum time.Duration) {
	const tasks = "/proc/self/task"
	dir, err := os.Open(tasks)
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		text, err := os.ReadFile(tasks + "/" + name + "/schedstat")
		if err != nil {
			continue // it has just ended
		}
		if fields := bytes.Fields(text); len(fields) > 1 { // ran ns, waited ns, slices
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			sum += time.Duration(n)
		}
	}
	return sum
}
