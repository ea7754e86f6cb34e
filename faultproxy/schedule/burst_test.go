package schedule

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestBurstValidate(t *testing.T) {
	for _, row := range []struct {
		enter, leave PPB
		reason       string
	}{
		{20_000_000, 200_000_000, ""}, {500_000_000, 500_000_000, ""}, {50_000, 50_000, ""},
		{600_000_000, 500_000_000, "alternate"}, {One, 1, "alternate"}, {0, 100_000_000, "above 0"}, {100_000_000, 0, "above 0"},
		{0, 0, "above 0"}, {One + 1, 1, "parts per"}, {math.MaxUint32, math.MaxUint32, "parts per"}, {10, 10, "longer epochs"},
	} {
		err := Burst{Enter: row.enter, Leave: row.leave}.Validate()
		if (row.reason == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.reason) {
			t.Errorf("enter %v leave %v: %v, want %q", row.enter, row.leave, err, row.reason)
		}
	}
}

// chain is what 200,000 epochs of a burst look like.
type chain struct {
	bad, runs, longest int
	walk               float64 // draws per state
}

func observe(b Burst, s Stream, rule RuleKey, from int64, epochs int) chain {
	var c chain
	run, walk := 0, 0
	for e := from; e < from+int64(epochs); e++ {
		for j := e; ; j-- { // how far back the deciding draw lies
			walk++
			if u := Below(s.Draw(rule, uint64(j), 0, LaneBurst), uint64(One)); u < uint64(b.Enter) || u >= uint64(One-b.Leave) {
				break
			}
		}
		if !b.Bad(s, rule, e) {
			run = 0
			continue
		}
		c.bad++
		if run++; run == 1 {
			c.runs++
		}
		c.longest = max(c.longest, run)
	}
	c.walk = float64(walk) / float64(epochs)
	return c
}

// TestBurstIsStationary compares with the theory of the chain: bad share
// p/(p+r), mean burst 1/r, mean walk 1/(p+r). The start lies below zero, so
// that half of the epochs are negative.
func TestBurstIsStationary(t *testing.T) {
	const epochs = 200_000
	for _, row := range []struct{ p, r, share, length, walk float64 }{
		{0.02, 0.2, 0.0909, 5, 4.55}, {0.01, 0.05, 0.1667, 20, 16.7}, {0.05, 0.5, 0.0909, 2, 1.82}, {0.1, 0.1, 0.5, 10, 5},
	} {
		b := Burst{Enter: PPB(row.p * 1e9), Leave: PPB(row.r * 1e9)}
		if err := b.Validate(); err != nil {
			t.Fatal(err)
		}
		c := observe(b, New("42"), KeyOf("burst"), -epochs/2, epochs)
		share, length := float64(c.bad)/epochs, float64(c.bad)/float64(c.runs)
		if math.Abs(share/row.share-1) > 0.05 || math.Abs(length/row.length-1) > 0.04 || math.Abs(c.walk/row.walk-1) > 0.03 {
			t.Errorf("p=%v r=%v: share %.4f (%.4f), burst %.2f (%.2f), walk %.2f (%.2f)",
				row.p, row.r, share, row.share, length, row.length, c.walk, row.walk)
		}
		if c.longest < int(3*row.length) {
			t.Errorf("p=%v r=%v: the longest burst has only %d epochs", row.p, row.r, c.longest)
		}
	}
}

// TestBurstFollowsTheChain replays the chain forwards from one known state: the
// backward look must agree with every forward step.
func TestBurstFollowsTheChain(t *testing.T) {
	b := Burst{Enter: 20_000_000, Leave: 200_000_000}
	s, rule := New("7"), KeyOf("r")
	state := b.Bad(s, rule, -500)
	for e := int64(-499); e < 5_000; e++ {
		u := Below(s.Draw(rule, uint64(e), 0, LaneBurst), uint64(One))
		if state {
			state = u < uint64(One-b.Leave)
		} else {
			state = u < uint64(b.Enter)
		}
		if got := b.Bad(s, rule, e); got != state {
			t.Fatalf("epoch %d: %v, the chain says %v", e, got, state)
		}
	}
}

func TestBurstFloor(t *testing.T) {
	b := Burst{Enter: 20_000_000, Leave: 200_000_000}
	for _, row := range []struct {
		delays []int
		want   string
	}{
		{[]int{0, 0}, "0.000"}, {[]int{1, 2}, "0.485"}, {[]int{5, 10}, "0.941"}, {[]int{10_000, 10_000}, "0.992"}, {nil, "0.000"},
	} {
		if got := fmt.Sprintf("%.3f", b.Floor(row.delays...)); got != row.want {
			t.Errorf("delays %v: floor %s, want %s", row.delays, got, row.want)
		}
	}
}

// TestBurstFloorIsWhatBurstsGive draws what Floor computes: among epochs that
// are bad, the share with a good one at the retries.
func TestBurstFloorIsWhatBurstsGive(t *testing.T) {
	b := Burst{Enter: 20_000_000, Leave: 200_000_000}
	s, rule := New("42"), KeyOf("floor")
	bad, recovered := 0, 0
	for e := range int64(200_000) {
		if !b.Bad(s, rule, e) {
			continue
		}
		bad++
		if !b.Bad(s, rule, e+1) || !b.Bad(s, rule, e+3) {
			recovered++
		}
	}
	if got, want := float64(recovered)/float64(bad), b.Floor(1, 2); math.Abs(got-want) > 0.02 {
		t.Errorf("drawn %.3f, computed %.3f", got, want)
	}
}
