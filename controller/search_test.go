package controller

import (
	"math/rand/v2"
	"testing"
	"time"

	"ordeal/controller/plan"
	"ordeal/controller/result"
	"ordeal/controller/spec"
)

func searchSpec() *spec.Spec {
	knee := spec.DefaultKnee()
	return &spec.Spec{Load: &spec.Load{Duration: 10 * time.Second, Knee: &knee}}
}

// find runs a search against a target that meets the SLO as told.
func find(t *testing.T, s *spec.Spec, meets func(plan.Level) *bool) (result.Knee, []plan.Level) {
	t.Helper()
	return findLevels(t, s, func(l plan.Level) result.LoadLevel { return result.LoadLevel{Met: meets(l), Why: "as told"} })
}

func findLevels(t *testing.T, s *spec.Spec, try func(plan.Level) result.LoadLevel) (result.Knee, []plan.Level) {
	t.Helper()
	k := newSearch(s)
	var levels []plan.Level
	for {
		l, more := k.next()
		if !more {
			return k.knee, levels
		}
		if len(levels) > searchLevels {
			t.Fatalf("%d levels", len(levels))
		}
		if l.Index != len(levels) || l.Rate < 0.001 {
			t.Fatalf("level %+v after %d levels", l, len(levels))
		}
		levels = append(levels, l)
		lv := try(l)
		k.see(l, &lv)
	}
}

func truth(v bool) *bool { return &v }

// TestSearchFindsTheCapacity: whatever a target takes, the rate found lies at most
// the precision below it, and was confirmed.
func TestSearchFindsTheCapacity(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		capacity := 0.5 + 3000*rng.Float64()*rng.Float64()
		knee, levels := find(t, searchSpec(), func(l plan.Level) *bool { return truth(l.Rate <= capacity) })
		if knee.Rate == nil || *knee.Rate > capacity || *knee.Rate < capacity*(1-0.021) || knee.Met != 3 || *knee.Lo > *knee.Hi {
			t.Errorf("capacity %v: %+v after %d levels", capacity, knee, len(levels))
			continue
		}
		for _, l := range levels[len(levels)-3:] {
			if !l.Confirms || l.Duration != 20*time.Second || l.Rate != *knee.Rate {
				t.Errorf("confirmation %+v, want 20 s at %v", l, *knee.Rate)
			}
		}
	}
}

// TestSearchOfABurst: a bucket of tokens lets a short level through that a
// confirmation does not; the search comes down to what it refills.
func TestSearchOfABurst(t *testing.T) {
	meets := func(l plan.Level) *bool {
		refill, burst := 50.0, 20.0
		refused := (l.Rate-refill)*l.Duration.Seconds() - burst
		return truth(refused <= 0.01*l.Rate*l.Duration.Seconds())
	}
	knee, levels := find(t, searchSpec(), meets)
	if knee.Rate == nil || *knee.Rate < 50 || *knee.Rate > 52.5 {
		t.Errorf("%+v after %d levels, want 50 to 52.5", knee, len(levels))
	}
}

func TestSearchEnds(t *testing.T) {
	never, levels := find(t, searchSpec(), func(plan.Level) *bool { return truth(false) })
	if never.Rate != nil || never.Hi == nil || *never.Hi > 0.011 || never.Lo != nil {
		t.Errorf("a target that takes nothing: %+v after %d levels", never, len(levels))
	}
	always, _ := find(t, searchSpec(), func(plan.Level) *bool { return truth(true) })
	if always.Rate == nil || *always.Rate != 100_000 || always.Hi != nil || always.Met != 3 {
		t.Errorf("a target that takes everything: %+v", always)
	}
	limited, levels := find(t, searchSpec(), func(l plan.Level) *bool {
		if l.Rate > 100 {
			return nil
		}
		return truth(true)
	})
	if limited.Rate != nil || len(levels) != 5 || *limited.Lo != 80 {
		t.Errorf("a generator that is the limit above 100/s: %+v after %d levels", limited, len(levels))
	}
	busy := 0
	knee, levels := findLevels(t, searchSpec(), func(plan.Level) result.LoadLevel {
		busy++
		if busy%3 != 0 { // two of three are lost to others on the machine
			return result.LoadLevel{Generator: result.LoadGenerator{Saturated: true}, Why: "no CPU left"}
		}
		return result.LoadLevel{Met: truth(true)}
	})
	if knee.Rate == nil || knee.Met != 3 {
		t.Errorf("on a machine that is busy now and then: %+v after %d levels", knee, len(levels))
	}
	coin := rand.New(rand.NewPCG(7, 7))
	if _, levels := find(t, searchSpec(), func(plan.Level) *bool { return truth(coin.IntN(2) == 0) }); len(levels) > searchLevels {
		t.Errorf("a target that tosses coins: %d levels", len(levels))
	}
}

// TestSearchGoesTheSameWay: a resumed run replays its levels.
func TestSearchGoesTheSameWay(t *testing.T) {
	meets := func(l plan.Level) *bool { return truth(l.Rate <= 333) }
	_, first := find(t, searchSpec(), meets)
	_, second := find(t, searchSpec(), meets)
	if len(first) != len(second) {
		t.Fatalf("%d levels, then %d", len(first), len(second))
	}
	for i := range first {
		if first[i] != second[i] {
			t.Errorf("level %d: %+v, then %+v", i, first[i], second[i])
		}
	}
}
