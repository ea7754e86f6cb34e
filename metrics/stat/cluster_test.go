package stat

import (
	"math"
	"testing"
)

func TestDesignEffect(t *testing.T) {
	near(t, DesignEffect(10, 0.1), 1.9, 1e-12)
	near(t, DesignEffect(10, 0.3), 3.7, 1e-12)
	near(t, DesignEffect(1, 0.9), 1, 0)
	near(t, BurstEffect(0.02, 0.2), 8.1, 0.006)
	near(t, BurstEffect(0.01, 0.05), 32, 0.012)
	near(t, BurstEffect(0.05, 0.5), 2.6, 0.02)
	near(t, BurstEffect(0.5, 0.5), 1, 0) // independent steps
}

func TestObservedEffect(t *testing.T) {
	// [1 1 1] [0 0 0] [1 0 1] [1 1 1]: corrected clustered error 0.235702, binomial 0.136083.
	effect, ok := ObservedEffect([]int64{3, 0, 2, 3}, []int64{3, 3, 3, 3})
	if !ok {
		t.Fatal("four clusters do not tell")
	}
	near(t, effect, math.Pow(0.235702/math.Sqrt(2./9/12), 2), 1e-5)
	if effect, ok = ObservedEffect([]int64{5, 5}, []int64{10, 10}); !ok || effect != 1 {
		t.Errorf("equal clusters give %v, %v", effect, ok)
	}
	for name, row := range map[string][2][]int64{
		"one cluster": {{5}, {10}}, "all well": {{5, 5}, {5, 5}}, "none well": {{0, 0}, {5, 5}}, "nothing": {nil, nil},
	} {
		if effect, ok := ObservedEffect(row[0], row[1]); ok || effect != 1 {
			t.Errorf("%s: %v, %v", name, effect, ok)
		}
	}
}

func TestClusterWilson(t *testing.T) {
	sameInterval(t, ClusterWilson(96, 100, 1, 0.95), Wilson(96, 100, 0.95), 0)
	sameInterval(t, ClusterWilson(96, 100, 0.3, 0.95), Wilson(96, 100, 0.95), 0)
	sameInterval(t, ClusterWilson(960, 1000, 10, 0.95), Wilson(96, 100, 0.95), 1e-15)
	sameInterval(t, ClusterWilson(0, 0, 2, 0.95), Interval{0, 1}, 0)
	sameInterval(t, ClusterWilson(5, 10, math.Inf(1), 0.95), Interval{0, 1}, 0)
	sameInterval(t, ClusterWilson(10, 10, 1.9, 0.95), Interval{10 / 1.9 / (10/1.9 + 3.841459), 1}, 1e-7)
}
