package workload

import (
	"encoding/json"
	"sort"
	"unicode"

	"ordeal/faultproxy/schedule"
)

// maxTokens is the longest text that is made, in words or tokens: about 1 MiB.
const maxTokens = 200_000

// text is how a text of a drawn length is made.
type text struct {
	length textLength
	source *corpus // nil: of the vocabulary
	feeder int     // of the source
}

// append draws a text as the inside of a JSON string: its length on one lane,
// its words on the next.
func (t *text) append(buf []byte, p *Plan, op uint64, lane schedule.Lane, key schedule.RuleKey) []byte {
	n := t.length.draw(p.stream, op, lane, key)
	if t.source != nil {
		row := schedule.Below(p.stream.Draw(key, op, 0, lane+1), uint64(len(t.source.starts)))
		return t.source.append(buf, n, int(row))
	}
	return appendWords(buf, p.stream, n, op, lane+1, key)
}

// appendWords appends n words of the vocabulary, one a byte of the draw.
func appendWords(buf []byte, s schedule.Stream, n int64, op uint64, lane schedule.Lane, key schedule.RuleKey) []byte {
	var block [4]uint64
	for i := range n {
		if i%32 == 0 {
			block = s.Block(op, uint32(i/32), lane, key)
		}
		if i > 0 {
			buf = append(buf, ' ')
		}
		w := &block[i/8%4]
		buf = append(buf, vocabulary[*w>>56]...)
		*w <<= 8
	}
	return buf
}

// bytesPerToken is the rule of thumb for texts of others.
const bytesPerToken = 4

// corpus is the texts of a feeder's column one after the other, a line feed after
// each, escaped, with the places where it may be cut.
type corpus struct {
	text   []byte
	ends   []int   // of each cut, in text
	sizes  []int64 // up to it, in bytes before they were escaped
	starts []int   // for each row, the first cut after its beginning
}

// longestWord bounds what lies between two cuts, for languages without blanks.
const longestWord = 16

// newCorpus cuts texts after words.
func newCorpus(rows [][]cell, column int) *corpus {
	c, size := &corpus{}, int64(0)
	cut := func() {
		c.ends = append(c.ends, len(c.text))
		c.sizes = append(c.sizes, size)
	}
	for _, row := range rows {
		c.starts = append(c.starts, len(c.ends))
		for from, s := 0, textOf(row[column])+"\n"; from < len(s); {
			n := cutAfter(s[from:])
			c.text = appendEscaped(c.text, s[from:from+n])
			size += int64(n)
			from += n
			cut()
		}
	}
	return c
}

// textOf is a cell's text: of a string what it says, of anything else its JSON.
func textOf(c cell) (s string) {
	if json.Unmarshal(c.lone, &s) == nil {
		return s
	}
	return string(c.lone)
}

// cutAfter is where the first word of s ends, blanks before it included.
func cutAfter(s string) int {
	word := false
	for i, r := range s {
		switch {
		case unicode.IsSpace(r) && word, i >= longestWord:
			return i
		case !unicode.IsSpace(r):
			word = true
		}
	}
	return len(s)
}

// append appends the text of n tokens from the beginning of a row on, and from
// the first row again after the last.
func (c *corpus) append(buf []byte, n int64, row int) []byte {
	for at, left := c.starts[row], n*bytesPerToken; left > 0; at = 0 {
		before, from := int64(0), 0
		if at > 0 {
			before, from = c.sizes[at-1], c.ends[at-1]
		}
		end := at + sort.Search(len(c.sizes)-at, func(i int) bool { return c.sizes[at+i]-before >= left })
		if end < len(c.sizes) {
			return append(buf, c.text[from:c.ends[end]]...)
		}
		buf = append(buf, c.text[from:]...)
		left -= c.sizes[len(c.sizes)-1] - before
	}
	return buf
}
