package stat

import (
	"math/rand/v2"
	"testing"
)

func TestConfidenceSequence(t *testing.T) {
	for _, row := range []struct {
		k, n  int64
		alpha float64
		want  Interval
	}{
		{0, 0, 0.05, Interval{0, 1}},
		// Computed with 40 decimal digits.
		{95, 100, 0.05, Interval{0.844205556459, 0.992850521067}},
		{950, 1000, 0.05, Interval{0.920760418189, 0.97128008274}},
	} {
		sameInterval(t, ConfidenceSequence(row.k, row.n, row.alpha), row.want, 1e-11)
	}
}

func TestConfidenceSequenceIsWiderAndShrinks(t *testing.T) {
	width := 1.0
	for n := int64(20); n <= 20_000_000; n *= 10 {
		k := n * 19 / 20
		always, once := ConfidenceSequence(k, n, 0.05), Wilson(k, n, 0.95)
		if always.Lo >= once.Lo || always.Hi <= once.Hi {
			t.Errorf("n=%d: %v is not wider than %v", n, always, once)
		}
		if always.Hi-always.Lo >= width {
			t.Errorf("n=%d: %v did not shrink", n, always)
		}
		width = always.Hi - always.Lo
	}
	for n := int64(1); n <= 50; n++ {
		iv := ConfidenceSequence(n, n, 0.05)
		if mirror := ConfidenceSequence(0, n, 0.05); iv.Hi != 1 || mirror.Lo != 0 {
			t.Errorf("n=%d: ends %v and %v", n, iv, mirror)
		}
	}
}

// peekEvery is how often the simulated reader looks, out of peekUntil.
const peekEvery, peekUntil = 10, 1000

// falseAlarms returns the share of runs in which an interval excluded the truth
// at one look or more. Intervals are computed once per count.
func falseAlarms(seed uint64, runs int, truth float64, interval func(k, n int64) Interval) float64 {
	rng := rand.New(rand.NewPCG(seed, 7))
	excluded := map[[2]int64]bool{}
	looks := func(k, n int64) bool {
		verdict, seen := excluded[[2]int64{k, n}]
		if !seen {
			verdict = !interval(k, n).Contains(truth)
			excluded[[2]int64{k, n}] = verdict
		}
		return verdict
	}
	alarms := 0
	for range runs {
		k := int64(0)
		for n := int64(1); n <= peekUntil; n++ {
			if rng.Float64() < truth {
				k++
			}
			if n%peekEvery == 0 && looks(k, n) {
				alarms++
				break
			}
		}
	}
	return float64(alarms) / float64(runs)
}

// TestPeeking looks every ten operations at a target that sits exactly on its
// floor. The always-valid interval must hold its 5 %; the fixed-n interval,
// misused the same way and on its upper side alone, must be seen to break it, or the test proves nothing.
func TestPeeking(t *testing.T) {
	for _, truth := range []float64{0.5, 0.90, 0.95, 0.99} {
		always := falseAlarms(1, 4_000, truth, func(k, n int64) Interval { return ConfidenceSequence(k, n, 0.05) })
		if always > 0.05 || always == 0 {
			t.Errorf("truth %v: the confidence sequence excludes it in %.2f %% of runs", truth, 100*always)
		}
		once := falseAlarms(1, 4_000, truth, func(k, n int64) Interval { return Interval{0, Wilson(k, n, 0.95).Hi} })
		if once < 0.15 {
			t.Errorf("truth %v: a repeated Wilson interval excludes it in only %.1f %% of runs", truth, 100*once)
		}
		t.Logf("truth %v: sequence %.2f %%, Wilson %.1f %%", truth, 100*always, 100*once)
	}
}
