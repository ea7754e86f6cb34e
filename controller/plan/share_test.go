package plan

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

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

// TestShareOfAProfile: each caller of a profile belongs to one agent, and where all
// have room no two agents differ by more than one caller at any height.
func TestShareOfAProfile(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	for range 2_000 {
		callers := 1 + rng.IntN(64)
		capacities := make([]int, 1+rng.IntN(12))
		for i := range capacities {
			capacities[i] = rng.IntN(20)
		}
		load := wire.Load{Workers: callers, Level: callers, Profile: []wire.Ramp{{For: time.Second, To: int64(callers)}}, BackoffBudget: time.Minute}
		parts, err := ShareAmong(wire.Unit{Load: &load}, capacities)
		if err != nil {
			continue // TestShareAmong knows when
		}
		seen := make([]int, callers)
		var budget time.Duration
		for i, p := range parts {
			l := p.Load
			budget += l.BackoffBudget
			if l.Level != callers || l.Workers < 1 || l.Parts > 1 && capacities[i] > 0 && l.Workers > capacities[i] {
				t.Fatalf("%d callers on %v: part %+v", callers, capacities, l)
			}
			for w := range l.Workers {
				c := l.FirstWorker + w
				if l.Parts > 1 {
					c = l.Part + w*l.Parts
				}
				seen[c]++
			}
		}
		for c, n := range seen {
			if n != 1 {
				t.Fatalf("%d callers on %v: caller %d belongs to %d agents", callers, capacities, c, n)
			}
		}
		if budget > time.Minute || budget < time.Minute-time.Microsecond {
			t.Fatalf("%d callers on %v: budgets of %v", callers, capacities, budget)
		}
	}
}

func TestShareOfAProfileWithoutRoom(t *testing.T) {
	u := wire.Unit{Load: &wire.Load{Workers: 12, Level: 12, Profile: []wire.Ramp{{For: time.Second, To: 12}}}}
	parts, err := ShareAmong(u, []int{2, 10})
	if err != nil || len(parts) != 2 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	if a, b := parts[0].Load, parts[1].Load; a.Workers != 2 || b.Workers != 10 || b.FirstWorker != 2 || a.Parts != 0 || b.Parts != 0 {
		t.Errorf("parts %+v and %+v, want blocks of 2 and 10", a, b)
	}
}
