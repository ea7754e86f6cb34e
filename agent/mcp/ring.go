package mcp

import (
	"io"
	"strings"
	"sync"
)

const (
	stderrKept  = 64 << 10 // bytes of stderr kept
	stderrShown = 4 << 10  // of them, at most, in a report
)

// ring keeps the tail of what is written to it, and counts the rest. It is safe
// for concurrent use.
type ring struct {
	mu    sync.Mutex
	buf   [stderrKept]byte
	total int64
}

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(p)
	if skip := n - len(r.buf); skip > 0 {
		p = p[skip:]
		r.total += int64(skip)
	}
	for len(p) > 0 {
		k := copy(r.buf[r.total%int64(len(r.buf)):], p)
		r.total += int64(k)
		p = p[k:]
	}
	return n, nil
}

// drain reads src to its end, so that no writer ever blocks on it.
func (r *ring) drain(src io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		_, _ = r.Write(buf[:n]) // never fails
		if err != nil {
			return
		}
	}
}

// written is the number of bytes that came.
func (r *ring) written() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// tail returns the last bytes, at most n, from the beginning of a line where one
// begins there. Bytes that are no UTF-8 are replaced.
func (r *ring) tail(n int64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, r.total, int64(len(r.buf)))
	out := make([]byte, 0, n)
	for at := r.total - n; at < r.total; {
		from := at % int64(len(r.buf))
		k := min(r.total-at, int64(len(r.buf))-from)
		out = append(out, r.buf[from:from+k]...)
		at += k
	}
	text := string(out)
	if n < r.total {
		if _, rest, ok := strings.Cut(text, "\n"); ok && rest != "" {
			text = rest
		}
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
