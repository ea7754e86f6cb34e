package http1

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Head is status line and framing of an answer.
type Head struct {
	Status int
	Minor  int   // of HTTP/1.x
	Length int64 // of the body, when it was announced; -1 otherwise
	Close  bool  // the connection ends with this answer

	chunked bool
	fields  []field
}

// field is one header line, as offsets into the buffer.
type field struct{ name, nameEnd, value, valueEnd int }

// MalformedError says what of an answer is no HTTP/1.1.
type MalformedError struct{ What string }

func (e *MalformedError) Error() string { return "malformed HTTP answer: " + e.What }

func malformed(what string, bytes []byte) error {
	return &MalformedError{fmt.Sprintf("%s %.60q", what, bytes)}
}

// maxInformational answers (1xx) may come before the one that counts.
const maxInformational = 16

var errHeadTooLarge = &MalformedError{"status line and headers are too large"}

// Head reads the status line and the headers of the answer. Informational answers
// are skipped. It must be called once per request.
func (c *Conn) Head() (*Head, error) {
	for range maxInformational {
		if err := c.readHead(); err != nil {
			return nil, err
		}
		if c.head.Status >= 200 || c.head.Status == 101 {
			c.body = c.r
			c.dec = c.r
			return &c.head, c.startBody()
		}
	}
	return nil, &MalformedError{"no end of informational answers"}
}

// Fields is the number of header lines.
func (c *Conn) Fields() int { return len(c.head.fields) }

// Field is the i-th header line; name as it was written, value without the white
// space around it. The slices are valid until the next read.
func (c *Conn) Field(i int) (name, value []byte) {
	f := &c.head.fields[i]
	return c.in[f.name:f.nameEnd], c.in[f.value:f.valueEnd]
}

func (c *Conn) readHead() error {
	begin := c.r
	from, to, err := c.line(c.pool.cfg.MaxHeader)
	if err != nil {
		return err
	}
	fields := c.head.fields[:0]
	c.head = Head{Length: -1}
	if err := c.head.statusLine(c.in[from:to]); err != nil {
		return err
	}
	for {
		left := c.pool.cfg.MaxHeader - (c.r - begin)
		if left <= 0 {
			return errHeadTooLarge
		}
		from, to, err := c.line(left)
		if err != nil {
			return err
		}
		if from == to {
			c.head.fields = fields
			return nil
		}
		f, err := split(c.in, from, to)
		if err != nil {
			return err
		}
		if err := c.head.frame(c.in[f.name:f.nameEnd], c.in[f.value:f.valueEnd]); err != nil {
			return err
		}
		fields = append(fields, f)
	}
}

// line reads one line below max bytes and keeps it; its end is not part of it.
func (c *Conn) line(max int) (from, to int, err error) {
	from = c.r
	scanned := from
	for {
		if i := bytes.IndexByte(c.in[scanned:c.w], '\n'); i >= 0 {
			to = scanned + i
			c.r = to + 1
			c.dec = c.r
			if to > from && c.in[to-1] == '\r' {
				to--
			}
			return from, to, nil
		}
		scanned = c.w
		if scanned-from > max {
			return 0, 0, errHeadTooLarge
		}
		if err := c.fill(); err != nil {
			return 0, 0, cut(err, c.w > 0)
		}
	}
}

// statusLine reads HTTP/1.x, three digits, and a reason nobody needs.
func (h *Head) statusLine(line []byte) error {
	const form = "HTTP/1.x 200"
	if len(line) < len(form) || string(line[:7]) != "HTTP/1." || line[8] != ' ' || line[7] < '0' || line[7] > '9' {
		return malformed("status line", line)
	}
	h.Minor = int(line[7] - '0')
	for _, d := range line[9:12] {
		if d < '0' || d > '9' {
			return malformed("status line", line)
		}
		h.Status = 10*h.Status + int(d-'0')
	}
	if len(line) > len(form) && line[len(form)] != ' ' || h.Status < 100 {
		return malformed("status line", line)
	}
	h.Close = h.Minor == 0
	return nil
}

// split finds name and value of the header line in[from:to]. A line that goes on
// the one before it is refused: it was dropped from HTTP for being read in two ways.
func split(in []byte, from, to int) (field, error) {
	line := in[from:to]
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return field{}, malformed("header line", line)
	}
	for _, b := range line[:colon] {
		if !tokenByte[b] {
			return field{}, malformed("header line", line)
		}
	}
	value, end := from+colon+1, to
	for value < end && (in[value] == ' ' || in[value] == '\t') {
		value++
	}
	for end > value && (in[end-1] == ' ' || in[end-1] == '\t') {
		end--
	}
	for _, b := range in[value:end] {
		if b < ' ' && b != '\t' || b == 0x7f {
			return field{}, malformed("header value", line)
		}
	}
	return field{from, from + colon, value, end}, nil
}

// tokenByte is what a header name may hold.
var tokenByte = func() (t [256]bool) {
	for b := byte('!'); b < 0x7f; b++ {
		t[b] = strings.IndexByte("\"(),/:;<=>?@[\\]{}", b) < 0
	}
	return t
}()

// frame takes what a header says about where the answer ends.
func (h *Head) frame(name, value []byte) error {
	switch {
	case is(name, "content-length"):
		n, err := decimal(value)
		if err != nil || h.Length >= 0 && h.Length != n {
			return malformed("content-length", value)
		}
		h.Length = n
	case is(name, "transfer-encoding"):
		if h.chunked || h.Minor == 0 || !is(value, "chunked") {
			return malformed("transfer-encoding", value)
		}
		h.chunked = true
	case is(name, "connection"):
		for token := range bytes.SplitSeq(value, []byte{','}) {
			switch token = bytes.TrimSpace(token); {
			case is(token, "close"):
				h.Close = true
			case is(token, "keep-alive") && h.Minor == 0:
				h.Close = false
			}
		}
	}
	return nil
}

// is compares without regard to case; lower is in lower case.
func is(text []byte, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i, b := range text {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != lower[i] {
			return false
		}
	}
	return true
}

var errNumber = errors.New("no number")

// decimal reads digits and nothing else.
func decimal(text []byte) (int64, error) {
	if len(text) == 0 || len(text) > 18 {
		return 0, errNumber
	}
	var n int64
	for _, d := range text {
		if d < '0' || d > '9' {
			return 0, errNumber
		}
		n = 10*n + int64(d-'0')
	}
	return n, nil
}
