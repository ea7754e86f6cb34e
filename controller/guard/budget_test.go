package guard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestCallsTake(t *testing.T) {
	c := NewCalls(100, "a", "b")
	steps := []struct {
		agent         string
		want, granted int64
		left          bool
	}{
		{"a", 3, 3, true},     // 97
		{"b", 1000, 24, true}, // 97/4, 73
		{"c", 1000, 12, true}, // a third agent: 73/6, 61
		{"a", 0, 0, true},
		{"a", -5, 0, true},
		{"a", 1000, 10, true}, // 61/6, 51
	}
	for i, s := range steps {
		granted, left := c.Take(s.agent, s.want)
		if granted != s.granted || left != s.left {
			t.Errorf("step %d: Take(%s, %d) = %d, %v; want %d, %v", i, s.agent, s.want, granted, left, s.granted, s.left)
		}
	}
	if c.Left() != 51 {
		t.Errorf("%d left, want 51", c.Left())
	}
}

func TestCallsEnd(t *testing.T) {
	c := NewCalls(2, "a", "b")
	if n, left := c.Take("a", 10); n != 1 || !left {
		t.Errorf("first of two: %d, %v", n, left)
	}
	if n, left := c.Take("b", 10); n != 1 || left {
		t.Errorf("last: %d, %v", n, left)
	}
	if n, left := c.Take("a", 10); n != 0 || left {
		t.Errorf("beyond: %d, %v", n, left)
	}
	c.Return("b", 1)
	if n, left := c.Take("a", 10); n != 1 || left {
		t.Errorf("what came back: %d, %v", n, left)
	}
	for _, none := range []int64{0, -7, math.MinInt64} {
		if n, left := NewCalls(none).Take("a", 1); n != 0 || left {
			t.Errorf("of %d: %d, %v", none, n, left)
		}
	}
}

func TestCallsReturn(t *testing.T) {
	c := NewCalls(100)
	c.Take("a", 10)
	rows := []struct {
		agent   string
		n, left int64
	}{{"a", 4, 94}, {"a", -4, 94}, {"b", 5, 94}, {"a", 100, 100}, {"a", 1, 100}}
	for _, r := range rows {
		if c.Return(r.agent, r.n); c.Left() != r.left {
			t.Errorf("after Return(%s, %d) %d left, want %d", r.agent, r.n, c.Left(), r.left)
		}
	}
	c.Take("a", 10)
	c.Lost("a")
	if c.Return("a", 10); c.Left() != 90 {
		t.Errorf("a lost agent gave back: %d left, want 90", c.Left())
	}
}

// TestCallsNeverExceeded: whatever agents do, calls made stay within the cap,
// those of lost agents that used all they held included.
func TestCallsNeverExceeded(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		limit := r.Int64N(2000)
		c, held, made := NewCalls(limit), map[string]int64{}, int64(0)
		for range 500 {
			a := fmt.Sprint(r.IntN(8))
			switch r.IntN(10) {
			case 0: // dies having used everything, or nothing
				made += held[a] * r.Int64N(2)
				delete(held, a)
				c.Lost(a)
			case 1, 2:
				n := r.Int64N(held[a] + 1)
				held[a] -= n
				c.Return(a, n)
			default:
				n, left := c.Take(a, r.Int64N(100)-5)
				if left != (c.Left() > 0) || n < 0 {
					t.Fatalf("granted %d, left %v of %d", n, left, c.Left())
				}
				used := r.Int64N(held[a] + n + 1)
				held[a] += n - used
				made += used
			}
			out := int64(0)
			for _, n := range held {
				out += n
			}
			if made+out+c.Left() > limit {
				t.Fatalf("%d made, %d held, %d left of %d", made, out, c.Left(), limit)
			}
		}
	}
}

// TestCallsRunDryTogether: agents of equal speed that ask for far too much still
// make the same number of calls, to a few.
func TestCallsRunDryTogether(t *testing.T) {
	for _, agents := range []int{1, 3, 16} {
		const limit = 10_000
		var names []string
		for i := range agents {
			names = append(names, fmt.Sprint(i))
		}
		c, held, made := NewCalls(limit, names...), map[string]int64{}, map[string]int64{}
		var total, idle int64
		for total < limit { // one call each at a time
			for _, a := range names {
				if held[a] == 0 {
					held[a], _ = c.Take(a, limit)
				}
				if held[a] == 0 {
					idle++ // while others still have some
					continue
				}
				held[a]--
				made[a]++
				total++
			}
		}
		if total != limit || c.Left() != 0 {
			t.Errorf("%d agents: %d calls, %d left", agents, total, c.Left())
		}
		if most := int64(4 * agents); idle > most {
			t.Errorf("%d agents: %d times an agent had nothing to do while others had, want at most %d", agents, idle, most)
		}
	}
}

func TestCost(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	rows := []struct {
		name   string
		limit  float64
		prices []float64
		over   bool
		spent  float64
	}{
		{"Fresh", 5, nil, false, 0},
		{"Below", 5, []float64{2, 2.99}, false, 4.99},
		{"Reached", 5, []float64{2, 3}, true, 5},
		{"Overshot", 5, []float64{4.9, 1}, true, 5.9},
		{"NothingToSpend", 0, nil, true, 0},
		{"NegativeIsNoRefund", 5, []float64{4, -3, 1}, true, 5},
		{"UnknownPrice", 5, []float64{nan}, true, inf},
		{"UnknownPriceLater", 5, []float64{1, nan, 1}, true, inf},
		{"EndlessPrice", 5, []float64{inf, math.Inf(-1)}, true, inf},
		{"NoLimitIsNoBudget", nan, nil, true, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c := NewCost(r.limit)
			for _, p := range r.prices {
				c.Spend(p)
			}
			if c.Over() != r.over || c.Spent() != r.spent {
				t.Errorf("over %v, spent %v; want %v, %v", c.Over(), c.Spent(), r.over, r.spent)
			}
		})
	}
}
