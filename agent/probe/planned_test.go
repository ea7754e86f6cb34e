package probe

import (
	"math/rand/v2"
	"testing"

	"ordeal/agent/wire"
)

// TestPlannedCountsTheShare holds the arithmetic against the walk that the load
// itself makes.
func TestPlannedCountsTheShare(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	for range 2_000 {
		level := 1 + rng.IntN(20)
		first := rng.IntN(level)
		from := rng.Uint64N(50)
		stage := wire.Range{From: from, To: from + rng.Uint64N(200)}
		u := wire.Unit{Ops: stage, Load: &wire.Load{Level: level, FirstWorker: first, Workers: 1 + rng.IntN(level-first), Stage: stage}}
		want := int64(0)
		s := shareOf(&u)
		for k := uint64(0); ; k++ {
			_, skip, ok := s.nth(k)
			if !ok && k > 300 {
				break
			}
			if ok && !skip {
				want++
			}
		}
		if got := Planned(&u); got != want {
			t.Fatalf("%+v of %+v: %d planned, the load makes %d", u.Load, stage, got, want)
		}
	}
}
