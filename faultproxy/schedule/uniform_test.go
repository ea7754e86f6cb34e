package schedule

import (
	"fmt"
	"math"
	"testing"
)

// The seeds of this file are fixed, so its tests cannot fail by chance. Limits
// are the 0.1 % points of the statistic.

// chiSquared compares counts with equal expectation.
func chiSquared(counts []int, total int) float64 {
	want, sum := float64(total)/float64(len(counts)), 0.0
	for _, c := range counts {
		sum += (float64(c) - want) * (float64(c) - want) / want
	}
	return sum
}

func TestEveryLaneIsUniform(t *testing.T) {
	const draws = 20_000
	stream := New("42")
	for _, id := range []string{"r1", "r2", "recovery/r1"} {
		rule := KeyOf(id)
		for lane := range Lane(20) {
			sixteenths, lowBits := make([]int, 16), make([]int, 16)
			for op := range uint64(draws) {
				w := stream.Draw(rule, op, 0, lane)
				sixteenths[Below(w, 16)]++
				lowBits[w%16]++
			}
			for what, counts := range map[string][]int{"high": sixteenths, "low": lowBits} {
				if chi := chiSquared(counts, draws); chi > 45 { // 15 degrees of freedom; 120 such tests
					t.Errorf("rule %q lane %d: %s bits have chi-squared %.1f", id, lane, what, chi)
				}
			}
		}
	}
}

// TestCoordinatesAreIndependent correlates draws that differ in one coordinate.
func TestCoordinatesAreIndependent(t *testing.T) {
	const draws = 40_000
	stream, other, r1, r2 := New("42"), New("43"), KeyOf("r1"), KeyOf("r2")
	base := func(op uint64) uint64 { return stream.Draw(r1, op, 0, LaneFire) }
	others := map[string]func(op uint64) uint64{
		"next operation": func(op uint64) uint64 { return stream.Draw(r1, op+1, 0, LaneFire) },
		"next attempt":   func(op uint64) uint64 { return stream.Draw(r1, op, 1, LaneFire) },
		"other rule":     func(op uint64) uint64 { return stream.Draw(r2, op, 0, LaneFire) },
		"other seed":     func(op uint64) uint64 { return other.Draw(r1, op, 0, LaneFire) },
		"second word":    func(op uint64) uint64 { return stream.Block(op, 0, LaneFire, r1)[1] },
	}
	for lane := LaneKind; lane <= LaneBurst; lane++ {
		others[fmt.Sprintf("lane %d", lane)] = func(op uint64) uint64 { return stream.Draw(r1, op, 0, lane) }
	}
	for name, second := range others {
		if r := correlation(draws, base, second); math.Abs(r) > 3.9/math.Sqrt(draws) {
			t.Errorf("%s: correlation %.4f", name, r)
		}
	}
}

func correlation(n int, f, g func(uint64) uint64) float64 {
	centred := func(w uint64) float64 { return float64(w)/math.MaxUint64 - 0.5 }
	var sum float64
	for op := range uint64(n) {
		sum += centred(f(op)) * centred(g(op))
	}
	return sum / float64(n) * 12 // the variance of a uniform number is 1/12
}

func TestKindsShareTheRate(t *testing.T) {
	const ops = 100_000
	s := build(t, "1337", five("recovery/faults"))
	for attempt := range uint32(3) {
		counts, hits := make([]int, 5), 0
		for op := range uint64(ops) {
			if kind := s.At(op, attempt).Kind; kind != None {
				counts[kind-Timeout]++
				hits++
			}
		}
		if chi := chiSquared(counts, hits); chi > 18.5 { // 4 degrees of freedom
			t.Errorf("attempt %d: kinds %v, chi-squared %.1f", attempt, counts, chi)
		}
		if deviation := math.Abs(float64(hits) - 0.3*ops); deviation > 3.3*math.Sqrt(0.3*0.7*ops) {
			t.Errorf("attempt %d: %d faults of %d", attempt, hits, ops)
		}
	}
}

// TestDetailsAreIndependentOfTheKind looks at the cut position per kind and at
// the details of one decision among themselves.
func TestDetailsAreIndependentOfTheKind(t *testing.T) {
	s := build(t, "42", Rule{ID: "r", Kinds: DefaultKinds(), RatePPB: One})
	const ops = 20_000
	cells := make([]int, 5*10)
	for op := range uint64(ops) {
		d := s.At(op, 0)
		cells[int(d.Kind-Timeout)*10+int(Below(d.Cut, 10))]++
	}
	if chi := chiSquared(cells, ops); chi > 86 { // 49 degrees of freedom
		t.Errorf("kind by cut position: chi-squared %.1f", chi)
	}
	details := map[string]func(Decision) uint64{
		"delay": func(d Decision) uint64 { return d.Delay }, "payload": func(d Decision) uint64 { return d.Payload },
	}
	for name, detail := range details {
		r := correlation(ops, func(op uint64) uint64 { return s.At(op, 0).Cut }, func(op uint64) uint64 { return detail(s.At(op, 0)) })
		if math.Abs(r) > 3.9/math.Sqrt(ops) {
			t.Errorf("cut and %s: correlation %.4f", name, r)
		}
	}
}
