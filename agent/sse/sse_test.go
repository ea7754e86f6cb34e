package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

type got struct{ Type, ID, Data string }

func all(t testing.TB, r *Reader) ([]got, error) {
	t.Helper()
	var events []got
	for {
		e, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, got{e.Type, e.ID, string(e.Data)})
	}
}

// chunkings are ways a network may cut the same bytes.
var chunkings = map[string]func(string) io.Reader{
	"whole":    func(s string) io.Reader { return strings.NewReader(s) },
	"bytewise": func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
	"halves":   func(s string) io.Reader { return iotest.HalfReader(strings.NewReader(s)) },
	"dataerr":  func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
}

func TestReader(t *testing.T) {
	msg := func(data string) got { return got{Type: "message", Data: data} }
	tests := []struct {
		name, in string
		want     []got
		err      error
	}{
		{"empty", "", nil, io.EOF},
		{"one", "data: a\n\n", []got{msg("a")}, io.EOF},
		{"no space after colon", "data:a\n\n", []got{msg("a")}, io.EOF},
		{"only the first space goes", "data:  a \n\n", []got{msg(" a ")}, io.EOF},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []got{msg("a"), msg("b")}, io.EOF},
		{"CR", "data: a\r\rdata: b\r\r", []got{msg("a"), msg("b")}, io.EOF},
		{"mixed ends", "data: a\r\ndata: b\rdata: c\n\r\n", []got{msg("a\nb\nc")}, io.EOF},
		{"BOM", "\xef\xbb\xbfdata: a\n\n", []got{msg("a")}, io.EOF},
		{"BOM only at the start", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []got{msg("a")}, io.EOF},
		{"BOM alone", "\xef\xbb\xbf", nil, io.EOF},
		{"half a BOM", "\xef\xbb", nil, io.ErrUnexpectedEOF},
		{"comment", ": hi\n:\ndata: a\n: mid\n\n", []got{msg("a")}, io.EOF},
		{"data lines", "data: a\ndata\ndata: b\n\n", []got{msg("a\n\nb")}, io.EOF},
		{"priming event", "id: 7\ndata:\n\n", []got{{"message", "7", ""}}, io.EOF},
		{"id without data", "id: 7\n\ndata: a\n\n", []got{{"message", "7", "a"}}, io.EOF},
		{"id with NUL", "id: 7\nid: x\x00y\ndata: a\n\n", []got{{"message", "7", "a"}}, io.EOF},
		{"id cleared", "id: 7\ndata: a\n\nid\ndata: b\n\n", []got{{"message", "7", "a"}, {"message", "", "b"}}, io.EOF},
		{"type", "event: ping\ndata: a\n\ndata: b\n\n", []got{{"ping", "", "a"}, msg("b")}, io.EOF},
		{"type without data is dropped", "event: ping\n\ndata: b\n\n", []got{msg("b")}, io.EOF},
		{"unknown field", "datum: x\n{\"error\":1}\ndata: a\n\n", []got{msg("a")}, io.EOF},
		{"colon in data", "data: a:b: c\n\n", []got{msg("a:b: c")}, io.EOF},
		{"cut before the blank line", "data: a\n\ndata: b\n", []got{msg("a")}, io.ErrUnexpectedEOF},
		{"cut in a line", "data: a\n\ndata: b", []got{msg("a")}, io.ErrUnexpectedEOF},
		{"multi-byte", "data: żółć 漢字 🙂\n\n", []got{msg("żółć 漢字 🙂")}, io.EOF},
	}
	for _, tc := range tests {
		for cut, reader := range chunkings {
			t.Run(tc.name+"/"+cut, func(t *testing.T) {
				events, err := all(t, NewReader(reader(tc.in), 0))
				if diff := cmp.Diff(tc.want, events); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if !errors.Is(err, tc.err) {
					t.Errorf("end = %v, want %v", err, tc.err)
				}
			})
		}
	}
}

// One reply stream with everything a picky server may put before the answer.
func TestReaderLongPrelude(t *testing.T) {
	const reply = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"grüße 漢"}]}}`
	for _, end := range []string{"\n", "\r\n", "\r"} {
		in := "\xef\xbb\xbf" + strings.Join([]string{
			"retry: 50", ": hello", "",
			"id: p-0", "data:", "",
			"event: surprise", "data: {}", "",
			`data: {"jsonrpc":"2.0",`, `data: "method":"notifications/progress"}`, "",
			": alive", ": alive", ": alive",
			"data:" + reply, "", "",
		}, end)
		r := NewReader(iotest.OneByteReader(strings.NewReader(in)), 0)
		events, err := all(t, r)
		want := []got{
			{"message", "p-0", ""}, {"surprise", "p-0", "{}"},
			{"message", "p-0", "{\"jsonrpc\":\"2.0\",\n\"method\":\"notifications/progress\"}"},
			{"message", "p-0", reply},
		}
		if diff := cmp.Diff(want, events); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("end %q: err %v, events (-want +got):\n%s", end, err, diff)
		}
		if r.Retry() != 50*time.Millisecond || r.Comments() != 4 || r.LastID() != "p-0" {
			t.Errorf("end %q: retry %v, comments %d, id %q", end, r.Retry(), r.Comments(), r.LastID())
		}
	}
}

func TestReaderRetry(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration
	}{
		{"1500", 1500 * time.Millisecond}, {"0", 0}, {"", 0}, {"-5", 0}, {"1.5", 0}, {"x", 0},
		{"99999999999999999999999", time.Hour},
	}
	for _, tc := range tests {
		r := NewReader(strings.NewReader("retry: "+tc.in+"\n\n"), 0)
		if _, err := r.Next(); !errors.Is(err, io.EOF) || r.Retry() != tc.want {
			t.Errorf("retry %q = %v (%v), want %v", tc.in, r.Retry(), err, tc.want)
		}
	}
}

func TestReaderBound(t *testing.T) {
	fits := "data: " + strings.Repeat("a", 99) + "\n\n"
	if events, err := all(t, NewReader(strings.NewReader(fits), 100)); len(events) != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("99 bytes under a bound of 100: %d events, %v", len(events), err)
	}
	long := "data: " + strings.Repeat("a", 101) + "\n\n"
	many := strings.Repeat("data: aaaaaaaaaaaaaaaaaaa\n", 6) + "\n"
	for _, in := range []string{long, many} {
		if _, err := NewReader(strings.NewReader(in), 100).Next(); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes under a bound of 100: %v, want ErrTooLarge", len(in), err)
		}
	}
	endless := NewReader(io.MultiReader(strings.NewReader("data: "), zeros{}), 1<<20)
	if _, err := endless.Next(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("endless line: %v, want ErrTooLarge", err)
	}
	if cap(endless.buf) > 4<<20 {
		t.Errorf("endless line: buffer grew to %d bytes", cap(endless.buf))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestReaderPartialAndStray(t *testing.T) {
	r := NewReader(strings.NewReader("{\"error\":{\"type\":\"overloaded\"}}\nid: 4\ndata: half"), 0)
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("end = %v", err)
	}
	e, ok := r.Partial()
	if !ok || string(e.Data) != "half" || e.ID != "4" {
		t.Errorf("partial = %+v, %v", e, ok)
	}
	if string(r.Stray()) != `{"error":{"type":"overloaded"}}` {
		t.Errorf("stray = %q", r.Stray())
	}
	whole := NewReader(strings.NewReader("data: a\n\n"), 0)
	if _, err := all(t, whole); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if e, ok := whole.Partial(); ok {
		t.Errorf("partial of a whole stream = %+v", e)
	}
}

// An event must not wait for bytes behind its blank line, not even for the LF
// that may follow a CR.
func TestReaderDoesNotReadAhead(t *testing.T) {
	for _, in := range []string{"data: a\n\n", "data: a\r\n\r", "data: a\r\r"} {
		src := io.MultiReader(strings.NewReader(in), iotest.ErrReader(errors.New("read too far")))
		if e, err := NewReader(src, 0).Next(); err != nil || string(e.Data) != "a" {
			t.Errorf("%q: %q, %v", in, e.Data, err)
		}
	}
}

func TestReaderKeepsSourceError(t *testing.T) {
	broken := errors.New("connection reset")
	r := NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)), 0)
	events, err := all(t, r)
	if len(events) != 1 || !errors.Is(err, broken) {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// FuzzReader: the chunking never matters, and no event exceeds the bound.
func FuzzReader(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbfretry: 5\r\n: c\rid: 1\ndata: a\n\ndata:b\r\r"))
	f.Add([]byte("data\n\n\r\n\rdata: \x00\n"))
	f.Add([]byte("event: x\ndata: 1\ndata: 2\n\nid\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const bound = 200
		whole, werr := all(t, NewReader(bytes.NewReader(in), bound))
		bits, berr := all(t, NewReader(iotest.OneByteReader(bytes.NewReader(in)), bound))
		if diff := cmp.Diff(whole, bits); diff != "" {
			t.Errorf("chunking changed the events:\n%s", diff)
		}
		if errors.Is(werr, ErrTooLarge) != errors.Is(berr, ErrTooLarge) || errors.Is(werr, io.EOF) != errors.Is(berr, io.EOF) {
			t.Errorf("chunking changed the end: %v, %v", werr, berr)
		}
		for _, e := range whole {
			if len(e.Data) > bound {
				t.Errorf("event of %d bytes", len(e.Data))
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{100, 100 << 10, 12 << 20} {
		in := []byte("data: " + strings.Repeat("x", size) + "\n\n")
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if e, err := NewReader(bytes.NewReader(in), 0).Next(); err != nil || len(e.Data) != size {
					b.Fatal(err)
				}
			}
		})
	}
}
