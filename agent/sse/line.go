package sse

import (
	"bytes"
	"fmt"
	"io"
)

const (
	firstBuffer = 1 << 10
	fieldName   = 16 // a line may be this much longer than the data it carries
)

var bom = []byte("\xef\xbb\xbf")

// line returns the next line without its end. At the end of the stream it returns what is
// left of an unterminated last line. The slice is valid until the next call.
func (r *Reader) line() ([]byte, error) {
	for {
		r.dropEnd()
		if line, ok := r.cut(); ok {
			return line, r.fits(len(line))
		}
		if r.err != nil {
			rest := r.buf[r.lo:r.hi]
			r.lo, r.scanned = r.hi, 0
			return rest, r.err
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// dropEnd removes the LF of a CRLF whose CR ended the last line, and the BOM at
// the very beginning.
func (r *Reader) dropEnd() {
	if r.skipLF && r.lo < r.hi {
		if r.buf[r.lo] == '\n' {
			r.lo++
		}
		r.skipLF = false
	}
	if r.begun || r.lo == r.hi {
		return
	}
	head := r.buf[r.lo:r.hi]
	switch {
	case bytes.HasPrefix(head, bom):
		r.lo += len(bom)
		r.begun = true
	case !bytes.HasPrefix(bom, head) || r.err != nil:
		r.begun = true
	}
}

func (r *Reader) cut() ([]byte, bool) {
	if !r.begun {
		return nil, false
	}
	fresh := r.buf[r.lo+r.scanned : r.hi]
	end := bytes.IndexByte(fresh, '\n')
	if cr := bytes.IndexByte(fresh[:max(end, 0)], '\r'); cr >= 0 {
		end = cr
	} else if end < 0 {
		end = bytes.IndexByte(fresh, '\r')
	}
	if end < 0 {
		r.scanned += len(fresh)
		return nil, false
	}
	end += r.lo + r.scanned
	line := r.buf[r.lo:end]
	r.skipLF = r.buf[end] == '\r'
	r.lo, r.scanned = end+1, 0
	return line, true
}

// fill reads once. It makes room first, and refuses a line above the bound.
func (r *Reader) fill() error {
	if r.lo > 0 {
		r.hi = copy(r.buf, r.buf[r.lo:r.hi])
		r.lo = 0
	}
	if err := r.fits(r.hi); err != nil {
		return err
	}
	if r.hi == len(r.buf) {
		grown := make([]byte, max(firstBuffer, 2*len(r.buf)))
		copy(grown, r.buf[:r.hi])
		r.buf = grown
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.hi:])
		r.hi += n
		r.err = err
		if n > 0 || err != nil {
			return nil
		}
	}
	r.err = io.ErrNoProgress
	return nil
}

func (r *Reader) fits(line int) error {
	if line > r.max+fieldName {
		return fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, r.max)
	}
	return nil
}
