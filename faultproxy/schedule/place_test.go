package schedule

import "testing"

func TestPlaceIsAPermutation(t *testing.T) {
	s, rule := New("42"), KeyOf("placed")
	for _, n := range []uint64{1, 2, 3, 4, 5, 7, 16, 17, 20, 63, 64, 65, 1_000, 4_097} {
		taken := make([]bool, n)
		for i := range n {
			p := place(s, rule, i, n)
			if p >= n || taken[p] {
				t.Fatalf("n=%d: index %d goes to %d, outside or taken", n, i, p)
			}
			taken[p] = true
		}
	}
	if got := place(s, rule, 1<<63, 1<<64-1); got == 1<<64-1 {
		t.Errorf("the largest window leaks to %d", got)
	}
}

// TestExactly checks the promise at every size: so many first attempts, no
// fault outside the window, retries by rate.
func TestExactly(t *testing.T) {
	for _, m := range []uint64{1, 6, 19, 20} {
		s := build(t, "42", Rule{ID: "r", Kinds: DefaultKinds(), RatePPB: One, From: 100, To: 120, Exactly: m})
		if got := s.Replay(0, 500, 0); got.Disrupted != int64(m) {
			t.Errorf("exactly %d: %d disrupted", m, got.Disrupted)
		}
		if got := s.Replay(0, 100, 0).Add(s.Replay(120, 500, 0)); got.Disrupted != 0 {
			t.Errorf("exactly %d: %d disrupted outside the window", m, got.Disrupted)
		}
		if got := s.Replay(0, 500, 2); got.Recovered != 0 {
			t.Errorf("exactly %d: %d recovered though every retry is faulted", m, got.Recovered)
		}
	}
	clean := build(t, "42", Rule{ID: "r", Kinds: DefaultKinds(), To: 1_000, Exactly: 35})
	if got := clean.Replay(0, 1_000, 1); got.Disrupted != 35 || got.Recovered != 35 {
		t.Errorf("retries at rate 0: %+v", got)
	}
}

// TestPlacesAreFair counts over many seeds how often each of 20 operations, and
// each pair of neighbours, is among the 5 drawn ones.
func TestPlacesAreFair(t *testing.T) {
	const seeds, n, m = 4_000, 20, 5
	var single [n]float64
	pairs := 0.0
	for seed := range seeds {
		s, rule := New(string(rune('A'+seed%64))+string(rune('A'+seed/64))), KeyOf("r")
		previous := false
		for i := range uint64(n) {
			drawn := place(s, rule, i, n) < m
			if drawn {
				single[i]++
			}
			if drawn && previous {
				pairs++
			}
			previous = drawn
		}
	}
	chi := 0.0
	for _, count := range single {
		chi += (count - seeds*m/n) * (count - seeds*m/n) / (seeds * m / n)
	}
	if chi > 44 { // 19 degrees of freedom, 0.1 %
		t.Errorf("operations are drawn %v times, chi-squared %.1f", single, chi)
	}
	want := seeds * (n - 1) * float64(m*(m-1)) / (n * (n - 1))
	if pairs < 0.95*want || pairs > 1.05*want {
		t.Errorf("%v neighbours drawn, want about %v", pairs, want)
	}
}
