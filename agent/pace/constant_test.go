package pace

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
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

func BenchmarkConstantDue(b *testing.B) {
	c := Constant{MilliRate: 3_333_333}
	for i := range b.N {
		c.Due(uint64(i))
	}
}
