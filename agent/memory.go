package agent

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// memoryLeft is how much memory the process may still take, and what says so:
// GOMEMLIMIT, the control group it is in (v2), or the machine. On systems without
// /proc and control groups only the first one is known.
func memoryLeft() (bytes int64, of string) {
	bytes = unlimited
	least := func(left int64, what string) {
		if left < bytes {
			bytes, of = left, what
		}
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		least(limit-ownUse(), "GOMEMLIMIT")
	}
	if own, ok := ownGroup("/proc/self/cgroup"); ok {
		if left, ok := groupLeft("/sys/fs/cgroup", own); ok {
			least(left, "memory.max of the control group")
		}
	}
	if kib, ok := field("/proc/meminfo", "MemAvailable:"); ok {
		least(kib<<10, "the machine")
	}
	return bytes, of
}

// ownUse is what GOMEMLIMIT counts.
func ownUse() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// ownGroup is the path of the process's control group below the mount point.
func ownGroup(file string) (path string, ok bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path, true
		}
	}
	return "", false
}

// groupLeft is the least that a group and those around it leave. Cached files do
// not count as used: the kernel gives them up first.
func groupLeft(mount, path string) (left int64, ok bool) {
	left = unlimited
	for dir := filepath.Clean("/" + path); ; dir = filepath.Dir(dir) {
		at := filepath.Join(mount, dir)
		limit, limited := number(filepath.Join(at, "memory.max")) // "max" is none
		used, _ := number(filepath.Join(at, "memory.current"))
		cached, _ := field(filepath.Join(at, "memory.stat"), "inactive_file")
		if limited {
			left, ok = min(left, limit-max(0, used-cached)), true
		}
		if dir == "/" {
			return left, ok
		}
	}
}

func number(file string) (n int64, ok bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// field is the number behind a name in a file of one name a line.
func field(file, name string) (n int64, ok bool) {
	f, err := os.Open(file)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == name {
			n, err = strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
