// Package tape is memory that a server and whoever measures it share: how many calls
// arrived, when, and what the server has used of the processor. Reading it disturbs
// nothing, it works whatever the transport, and it outlives a killed server.
package tape

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Words before the arrivals, each of 8 bytes.
const (
	count = iota
	processor
	header
)

// Tape is a file in memory: the number of calls, the server's CPU time in ns, and
// then the moments of arrival, as long as there is room, in ns of Unix time.
type Tape struct {
	bytes []byte
	words []atomic.Int64
}

// Create makes an empty tape with room for so many arrivals.
func Create(path string, arrivals int) (*Tape, error) {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Truncate(path, int64(8*(header+arrivals))); err != nil {
		return nil, err
	}
	return Open(path)
}

// Open maps a tape that was created, often by another process.
func Open(path string) (*Tape, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &Tape{bytes: b, words: unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&b[0])), len(b)/8)}, nil
}

// Close unmaps it; what is on it stays in the file.
func (t *Tape) Close() error { return unix.Munmap(t.bytes) }

// Arrive counts a call and, where there is room, keeps its moment. It returns the
// moment of the first call, which a tape without room does not have: then 0.
func (t *Tape) Arrive(now time.Time) (first int64) {
	i := int(t.words[count].Add(1)) - 1
	if header+i < len(t.words) {
		t.words[header+i].Store(now.UnixNano())
	}
	if header < len(t.words) {
		first = t.words[header].Load()
	}
	return first
}

// Calls is how many arrived since the tape was rewound.
func (t *Tape) Calls() int64 { return t.words[count].Load() }

// Rewind forgets the calls so far: those that warmed the server.
func (t *Tape) Rewind() {
	t.words[count].Store(0)
	if header < len(t.words) {
		t.words[header].Store(0)
	}
}

// Arrivals are the kept moments in the order of arrival.
func (t *Tape) Arrivals() []int64 {
	n := min(int(t.Calls()), len(t.words)-header)
	out := make([]int64, n)
	for i := range out {
		out[i] = t.words[header+i].Load()
	}
	return out
}

// Used is the server's CPU time as it last wrote it down.
func (t *Tape) Used() time.Duration { return time.Duration(t.words[processor].Load()) }

// Watch writes the CPU time of this process down, now and every 20 ms, for as long
// as the process lives.
func (t *Tape) Watch() {
	for {
		var u unix.Rusage
		if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
			t.words[processor].Store(u.Utime.Nano() + u.Stime.Nano())
		}
		time.Sleep(20 * time.Millisecond)
	}
}
