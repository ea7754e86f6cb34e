package pace

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestConstantDue(t *testing.T) {
	rows := []struct {
		name string
		c    Constant
		i    uint64
		due  time.Duration
		ok   bool
	}{
		{"FirstAtOnce", Constant{MilliRate: 1000}, 0, 0, true},
		{"OnePerSecond", Constant{MilliRate: 1000}, 3, 3 * time.Second, true},
		{"Third", Constant{MilliRate: 3000}, 1, 333_333 * time.Microsecond, true},
		{"ThirdDoesNotDrift", Constant{MilliRate: 3000}, 3_000_000, 1_000_000 * time.Second, true},
		{"SlowRate", Constant{MilliRate: 1}, 2, 2000 * time.Second, true},
		{"Unpaced", Constant{}, 1 << 60, 0, true},
		{"CountReached", Constant{MilliRate: 1000, Count: 3}, 3, 0, false},
		{"LastOfCount", Constant{MilliRate: 1000, Count: 3}, 2, 2 * time.Second, true},
		{"LengthIsHalfOpen", Constant{MilliRate: 1000, Length: 2 * time.Second}, 2, 0, false},
		{"BeforeLength", Constant{MilliRate: 1000, Length: 2 * time.Second}, 1, time.Second, true},
		{"BeyondWords", Constant{MilliRate: 1}, 18_446_744_074, 0, false},
		{"BeyondTime", Constant{MilliRate: 1}, 1 << 63, 0, false},
		{"BeyondDuration", Constant{MilliRate: 1_000_000}, 1<<64 - 1, 0, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			due, ok := r.c.Due(r.i)
			if due != r.due || ok != r.ok {
				t.Errorf("Due(%d) = %v, %v; want %v, %v", r.i, due, ok, r.due, r.ok)
			}
		})
	}
}

// TestConstantExact holds every arrival against big integers.
func TestConstantExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		c := Constant{MilliRate: 1 + rng.Int64N(100_000_000)}
		i := rng.Uint64N(1 << (1 + rng.UintN(40)))
		want := new(big.Int).Mul(new(big.Int).SetUint64(i), big.NewInt(1e9))
		want.Div(want, big.NewInt(c.MilliRate)).Mul(want, big.NewInt(1000))
		due, ok := c.Due(i)
		if inRange := want.IsInt64(); ok != inRange || ok && int64(due) != want.Int64() {
			t.Fatalf("rate %d arrival %d: due %d, %v; want %v", c.MilliRate, i, due, ok, want)
		}
	}
}

func TestNext(t *testing.T) {
	c := Constant{MilliRate: 2000, Count: 3}
	rows := []struct {
		name    string
		elapsed time.Duration
		n       uint64
		wait    time.Duration
		stop    bool
	}{
		{"Due", 0, 0, 0, false},
		{"Early", 200 * time.Millisecond, 1, 300 * time.Millisecond, false},
		{"LateIsNotNegative", 5 * time.Second, 2, 0, false},
		{"Over", 5 * time.Second, 3, 0, true},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			wait, stop := Next(c, r.elapsed, r.n)
			if wait != r.wait || stop != r.stop {
				t.Errorf("Next = %v, %v; want %v, %v", wait, stop, r.wait, r.stop)
			}
		})
	}
}

func all(s Shape) []time.Duration {
	var out []time.Duration
	for i := uint64(0); ; i++ {
		due, ok := s.Due(i)
		if !ok {
			return out
		}
		out = append(out, due)
	}
}

// TestSharesSumToWhole: for any number of agents the union of their arrivals is
// the schedule of one, arrival for arrival.
func TestSharesSumToWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, k := range []uint64{1, 2, 3, 7, 16, 500} {
		for range 20 {
			whole := Constant{MilliRate: 1 + rng.Int64N(5_000_000), Count: rng.Uint64N(2000)}
			if rng.IntN(2) == 0 {
				whole.Length = time.Duration(1 + rng.Int64N(int64(time.Second)))
				whole.Count++
			}
			if whole.Count == 0 {
				continue
			}
			var union []time.Duration
			for first := range k {
				union = append(union, all(Every{Whole: whole, First: first, Step: k})...)
			}
			slices.Sort(union)
			if diff := cmp.Diff(all(whole), union); diff != "" {
				t.Fatalf("%d agents, %+v: %s", k, whole, diff)
			}
		}
	}
}

func TestEveryOverflowEnds(t *testing.T) {
	for _, e := range []Every{{Whole: Constant{}, First: 1<<64 - 1, Step: 2}, {Whole: Constant{}, Step: 1 << 63}} {
		if _, ok := e.Due(2); ok {
			t.Errorf("%+v: arrival 2 wrapped around", e)
		}
	}
}

func BenchmarkConstantDue(b *testing.B) {
	c := Constant{MilliRate: 3_333_333}
	for i := range b.N {
		c.Due(uint64(i))
	}
}
