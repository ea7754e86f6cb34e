package merge

import (
	"math"
	"math/bits"
)

// Spread is a small histogram of times: good enough to compare one agent with
// the others, small enough for 2,000 agents in each of 20 stages. Its cells are
// one unit wide up to 64 and then at most 1/32 (3.1 %) of the value; only the
// range that values fell into is held, 128 bytes for each factor of two. The
// zero value is empty. How it is merged does not change it.
type Spread struct {
	n     int64
	first int      // cell of counts[0]
	count []uint32 // values per cell; one that is full stays full
}

const (
	spreadBits  = 5
	spreadCells = 1 << spreadBits // per factor of two
)

// cellOf keeps the six leading bits of a value.
func cellOf(v int64) int {
	shift := max(0, bits.Len64(uint64(v))-spreadBits-1)
	return shift<<spreadBits + int(v>>shift)
}

// CellHigh is the highest value of a cell.
func CellHigh(cell int) int64 {
	if cell < 2*spreadCells {
		return int64(cell)
	}
	shift := cell>>spreadBits - 1
	return int64(cell-shift<<spreadBits+1)<<shift - 1
}

// Record adds a value n times; a negative one counts as zero.
func (s *Spread) Record(v, n int64) {
	if n > 0 {
		s.add(cellOf(max(v, 0)), n)
		s.n += n
	}
}

// add makes room for a cell and counts in it.
func (s *Spread) add(cell int, n int64) {
	if len(s.count) == 0 {
		s.first = cell
	}
	if before := s.first - cell; before > 0 {
		s.count = append(make([]uint32, before, before+len(s.count)), s.count...)
		s.first = cell
	}
	if beyond := cell - s.first - len(s.count) + 1; beyond > 0 {
		s.count = append(s.count, make([]uint32, beyond)...)
	}
	at := &s.count[cell-s.first]
	*at = uint32(min(int64(*at)+n, math.MaxUint32))
}

// Merge adds all of o.
func (s *Spread) Merge(o *Spread) {
	for cell, n := range o.Cells {
		s.add(cell, n)
	}
	s.n += o.n
}

// N is the number of values.
func (s *Spread) N() int64 { return s.n }

// Cells ranges over the filled cells in ascending order.
func (s *Spread) Cells(yield func(cell int, count int64) bool) {
	for i, n := range s.count {
		if n > 0 && !yield(s.first+i, int64(n)) {
			return
		}
	}
}
