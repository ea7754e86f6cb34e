package http1

import (
	"bytes"
	"errors"
	"io"
)

// decoder knows where in its body an answer is.
type decoder struct {
	state bodyState
	left  int64 // of the length, or of the chunk
	small int   // bytes of chunk lines and trailers left to be spent
}

type bodyState uint8

const (
	complete bodyState = iota
	byLength           // left bytes to come
	toClose            // until the connection ends
	chunkSize
	chunkData
	chunkEnd // the line end behind the data
	trailer
)

const (
	maxChunkLine = 4 << 10  // bytes of a chunk's size with its extensions
	maxTrailer   = 64 << 10 // bytes of trailers
)

func (d *decoder) ended() bool { return d.state == complete }

// expected is how much is known to come, at most a chunk of it.
func (d *decoder) expected() int64 {
	if d.state == byLength || d.state == chunkData {
		return d.left
	}
	return 0
}

// startBody decides how the body ends.
func (c *Conn) startBody() error {
	h := &c.head
	c.coder = decoder{small: maxTrailer}
	switch {
	case h.Status == 101:
		h.Close = true
		return malformed("status", []byte("101: no other protocol was asked for"))
	case h.Status == 204 || h.Status == 304 || c.bodiless:
		h.Length = 0
	case h.chunked:
		if h.Length >= 0 { // two ends: the connection is not to be trusted after this
			h.Length, h.Close = -1, true
		}
		c.coder.state = chunkSize
	case h.Length > 0:
		c.coder.state, c.coder.left = byLength, h.Length
	case h.Length < 0:
		c.coder.state = toClose
		h.Close = true
	}
	return nil
}

// Body is what of the body has been read. It is valid until the next read.
func (c *Conn) Body() []byte { return c.in[c.body:c.dec] }

// Complete reports whether the body has been read to its end.
func (c *Conn) Complete() bool { return c.coder.ended() }

// More adds to the body at least one byte. At its end it returns io.EOF; a body
// that was cut ends in io.ErrUnexpectedEOF, and one that is no HTTP in a
// MalformedError.
func (c *Conn) More() error {
	if c.failed != nil && !c.coder.ended() {
		return cut(c.failed, true)
	}
	before := c.dec
	for {
		for at := -1; at != c.r && !c.coder.ended() && c.failed == nil; {
			at = c.r
			c.failed = c.decode()
		}
		if c.dec > before {
			return nil
		}
		if c.coder.ended() {
			return io.EOF
		}
		if c.failed != nil {
			return c.failed
		}
		if err := c.fill(); err != nil {
			if c.coder.state == toClose && errors.Is(err, io.EOF) {
				c.coder.state = complete
				return io.EOF
			}
			return cut(err, true)
		}
	}
}

// decode takes one step over the unread bytes, as far as there are any.
func (c *Conn) decode() error {
	d := &c.coder
	switch d.state {
	case byLength:
		if c.takeLeft(); d.left == 0 {
			d.state = complete
		}
	case chunkData:
		if c.takeLeft(); d.left == 0 {
			d.state = chunkEnd
		}
	case toClose:
		c.take(c.w - c.r)
	case chunkSize, chunkEnd, trailer:
		return c.chunkLine()
	}
	return nil
}

// takeLeft adds what is there of the length, or of the chunk.
func (c *Conn) takeLeft() {
	n := int(min(c.coder.left, int64(c.w-c.r)))
	c.take(n)
	c.coder.left -= int64(n)
}

// take adds n unread bytes to the body.
func (c *Conn) take(n int) {
	if c.dec != c.r {
		copy(c.in[c.dec:], c.in[c.r:c.r+n])
	}
	c.dec += n
	c.r += n
}

// chunkLine takes the lines between chunks, when they are whole.
func (c *Conn) chunkLine() error {
	d := &c.coder
	for d.state != chunkData && d.state != complete {
		raw := c.in[c.r:c.w]
		end := bytes.IndexByte(raw, '\n')
		if end < 0 {
			if len(raw) > maxChunkLine {
				return malformed("chunk line", raw)
			}
			return nil
		}
		if end == 0 || raw[end-1] != '\r' || end > maxChunkLine {
			return malformed("chunk line", raw[:end])
		}
		c.r += end + 1
		if err := d.line(raw[:end-1]); err != nil {
			return err
		}
	}
	return nil
}

// line takes a line of the chunked coding, without its end.
func (d *decoder) line(line []byte) error {
	switch d.state {
	case chunkEnd:
		if len(line) > 0 {
			return malformed("end of a chunk", line)
		}
		d.state = chunkSize
	case chunkSize:
		n, err := size(line)
		if err != nil {
			return err
		}
		d.left, d.state = n, chunkData
		if n == 0 {
			d.state = trailer
		}
	case trailer:
		if d.small -= len(line); d.small < 0 {
			return malformed("trailers: too large at", line)
		}
		if len(line) == 0 {
			d.state = complete
			return nil
		}
		if _, err := split(line, 0, len(line)); err != nil {
			return err
		}
	}
	return nil
}

// size reads the hexadecimal size of a chunk; extensions behind it are skipped.
func size(line []byte) (int64, error) {
	digits, _, _ := bytes.Cut(line, []byte{';'})
	digits = bytes.TrimRight(digits, " \t")
	if len(digits) == 0 || len(digits) > 15 {
		return 0, malformed("chunk size", line)
	}
	var n int64
	for _, b := range digits {
		switch {
		case '0' <= b && b <= '9':
			b -= '0'
		case 'a' <= b|0x20 && b|0x20 <= 'f':
			b = b | 0x20 - 'a' + 10
		default:
			return 0, malformed("chunk size", line)
		}
		n = n<<4 | int64(b)
	}
	return n, nil
}

// cut makes of the end of a connection in the middle of an answer what it is.
func cut(err error, begun bool) error {
	if begun && errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
