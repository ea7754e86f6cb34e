package schedule

import (
	"math"
	"testing"
)

func TestBelow(t *testing.T) {
	for _, row := range []struct{ w, n, want uint64 }{
		{0, 6, 0}, {math.MaxUint64, 6, 5}, {1 << 63, 6, 3}, {1<<63 - 1, 6, 2}, {12345, 1, 0}, {12345, 0, 0},
		{math.MaxUint64, math.MaxUint64, math.MaxUint64 - 1},
	} {
		if got := Below(row.w, row.n); got != row.want {
			t.Errorf("Below(%d, %d) = %d, want %d", row.w, row.n, got, row.want)
		}
	}
}

func TestHitAtTheEnds(t *testing.T) {
	for _, w := range []uint64{0, 1, 1 << 63, math.MaxUint64} {
		if Hit(w, 0) {
			t.Errorf("rate 0 hits %d", w)
		}
		if !Hit(w, One) {
			t.Errorf("rate 1 misses %d", w)
		}
	}
	if !Hit(0, 1) || Hit(math.MaxUint64/uint64(One)+1, 1) {
		t.Error("the smallest rate hits another share than one in 10^9")
	}
}

func TestBetween(t *testing.T) {
	for _, row := range []struct {
		w            uint64
		lo, hi, want int64
	}{
		{0, -70, 70, -70}, {math.MaxUint64, -70, 70, 70}, {1 << 63, -70, 70, 0}, {99, 5, 5, 5},
		{0, math.MinInt64, math.MaxInt64, 0}, {math.MaxUint64, 0, math.MaxInt64, math.MaxInt64},
		{math.MaxUint64, math.MinInt64, 0, 0}, {0, math.MinInt64, 0, math.MinInt64},
	} {
		if got := Between(row.w, row.lo, row.hi); got != row.want {
			t.Errorf("Between(%d, %d, %d) = %d, want %d", row.w, row.lo, row.hi, got, row.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("an empty range gave a number")
		}
	}()
	Between(1, 2, 1)
}

func TestFromTable(t *testing.T) {
	table := []int64{100, 200, 1_000}
	for _, row := range []struct {
		w    uint64
		want int64
	}{
		{0, 100}, {1 << 62, 150}, {1 << 63, 200}, {3 << 62, 600}, {math.MaxUint64, 1_000},
	} {
		if got := FromTable(row.w, table); got != row.want {
			t.Errorf("FromTable(%x) = %d, want %d", row.w, got, row.want)
		}
	}
	if got := FromTable(math.MaxUint64, []int64{7}); got != 7 {
		t.Errorf("one entry gives %d", got)
	}
}

func TestDrawsDoNotAllocate(t *testing.T) {
	stream, rule := New("42"), KeyOf("r1")
	s := probeSchedule()
	op := uint64(0)
	if n := testing.AllocsPerRun(1000, func() {
		op++
		_ = stream.Block(op, 1, LaneCut, rule)
		_ = s.At(op, 0)
	}); n != 0 {
		t.Errorf("a draw allocates %v times", n)
	}
}

func BenchmarkBlock(b *testing.B) {
	stream, rule := New("42"), KeyOf("r1")
	b.ReportAllocs()
	op, sink := uint64(0), uint64(0)
	for b.Loop() {
		op++
		sink ^= stream.Block(op, 0, LaneFire, rule)[0]
	}
	_ = sink
}
