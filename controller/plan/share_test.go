package plan

import (
	"math/rand/v2"
	"strings"
	"testing"

	"ordeal/agent/wire"
)

// TestShareAmong: whatever the agents can hold, the parts are the whole, none is
// asked for more than it holds, and no two differ by more than one caller unless
// one of them is full.
func TestShareAmong(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 5_000 {
		callers := 1 + rng.IntN(64)
		capacities, all := make([]int, 1+rng.IntN(12)), 0
		for i := range capacities {
			capacities[i] = rng.IntN(20) // 0 = does not say
			if capacities[i] == 0 {
				all += callers
			}
			all += capacities[i]
		}
		u := wire.Unit{Ops: wire.Range{From: 7, To: 7 + uint64(rng.IntN(1000))}, Load: &wire.Load{Workers: callers, Level: callers}}
		parts, err := ShareAmong(u, capacities)
		if all < callers {
			if err == nil || !strings.Contains(err.Error(), "--capacity") {
				t.Fatalf("%d callers on %v: err %v", callers, capacities, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d callers on %v: %v", callers, capacities, err)
		}
		next, from, least := 0, u.Ops.From, callers
		for i, p := range parts {
			if p.Load.FirstWorker != next || p.Ops.From != from || p.Load.Workers < 1 || capacities[i] > 0 && p.Load.Workers > capacities[i] {
				t.Fatalf("%d callers on %v: part %d is %+v of %+v", callers, capacities, i, p.Load, p.Ops)
			}
			next, from = next+p.Load.Workers, p.Ops.To
			if capacities[i] == 0 || p.Load.Workers < capacities[i] {
				least = min(least, p.Load.Workers)
			}
		}
		if next != callers || from != u.Ops.To {
			t.Fatalf("%d callers on %v: the parts end at caller %d, operation %d", callers, capacities, next, from)
		}
		for i, p := range parts {
			if p.Load.Workers > least+1 {
				t.Fatalf("%d callers on %v: part %d has %d, another with room has %d", callers, capacities, i, p.Load.Workers, least)
			}
		}
	}
}

func TestShareOfARate(t *testing.T) {
	u := wire.Unit{Load: &wire.Load{Workers: 1, Level: 5, MilliRate: 1000, MaxInFlight: 10}}
	parts, err := ShareAmong(u, []int{0, 0, 0})
	if err != nil || len(parts) != 3 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	for i, p := range parts {
		if p.Load.Part != i || p.Load.Parts != 3 || p.Load.MaxInFlight != 3 || p.Load.Level != 2 || p.Load.MilliRate != 1000 {
			t.Errorf("part %d: %+v", i, p.Load)
		}
	}
}
