package mcp

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A server runs in a process group of its own, so that the children a launcher
// such as npx leaves behind can be found and ended with it.

// groupAlive reports whether a process of the group is left. Where /proc tells,
// zombies do not count: not every init reaps the orphans it inherits.
func groupAlive(pgid int) bool {
	if syscall.Kill(-pgid, 0) == syscall.ESRCH {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true
	}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		// "pid (name) state ppid pgrp ...", where the name may hold anything.
		fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(pgid) && string(fields[0]) != "Z" && string(fields[0]) != "X" {
			return true
		}
	}
	return false
}

// awaitGroup waits until no process of the group is left, at most limit.
func awaitGroup(pgid int, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if !groupAlive(pgid) {
			return true
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		time.Sleep(min(pause, left))
	}
}

// groups are those of servers that have been started and not seen to be gone.
var groups sync.Map

// KillAll ends every server at once, for a process that leaves without closing
// its clients.
func KillAll() {
	groups.Range(func(pgid, _ any) bool {
		signalGroup(pgid.(int), syscall.SIGKILL)
		return true
	})
}

func signalGroup(pgid int, sig syscall.Signal) { _ = syscall.Kill(-pgid, sig) } // gone already is as good
