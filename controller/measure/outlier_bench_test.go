package measure_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ordeal/controller/measure"
	"ordeal/controller/merge"
)

func BenchmarkFleetOf2000(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	sum := &merge.Summary{}
	slow := ordinary
	slow.median *= 4
	for level := range 10 {
		st := &merge.Stage{Name: fmt.Sprint("concurrency-", level), Gang: &merge.Gang{}}
		for i := range 2000 {
			v := ordinary
			if i < 30 {
				v = slow
			}
			v.watch(rng, st, fmt.Sprint(i), 100)
		}
		sum.Stages = append(sum.Stages, st)
	}
	for b.Loop() {
		measure.Fleet(sum, nil)
	}
}
