package stat

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// near fails unless got is within tol of want, relative to want where that is
// above 1.
func near(t *testing.T, got, want, tol float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tol*max(1, math.Abs(want)) {
		t.Errorf("got %.16g, want %.16g ± %g", got, want, tol)
	}
}

func sameInterval(t *testing.T, got, want Interval, tol float64) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, tol)); diff != "" {
		t.Errorf("interval (-want +got):\n%s", diff)
	}
}

// panics fails unless call panics.
func panics(t *testing.T, name string, call func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s did not panic", name)
		}
	}()
	call()
}

func TestMistakesPanic(t *testing.T) {
	for name, call := range map[string]func(){
		"more successes than trials": func() { Wilson(11, 10, 0.95) },
		"negative successes":         func() { LowerBound(-1, 10, 0.95) },
		"level in percent":           func() { ClopperPearson(1, 10, 95) },
		"level NaN":                  func() { UpperBound(1, 10, math.NaN()) },
		"alpha 0":                    func() { ConfidenceSequence(1, 10, 0) },
		"quantile in percent":        func() { NearestRank(10, 99) },
		"quantile NaN":               func() { QuantileRanks(10, math.NaN(), 0.95) },
		"negative sample":            func() { NearestRank(-1, 0.5) },
		"negative pairs":             func() { McNemar(-1, 3) },
		"design effect NaN":          func() { ClusterWilson(1, 2, math.NaN(), 0.95) },
		"weights of another length":  func() { PAVA([]float64{1, 2}, []float64{1}) },
	} {
		panics(t, name, call)
	}
}
