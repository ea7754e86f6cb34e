package stat

import "fmt"

// PAVA returns the non-decreasing sequence closest to values in weighted least
// squares (pool adjacent violators). Error rates over rising load are fitted
// with it, weights being the operations per level: a dip by luck between two
// bad levels then no longer names a wrong saturation point. Weights must be
// positive; nil means equal ones.
func PAVA(values, weights []float64) []float64 {
	if weights != nil && len(weights) != len(values) {
		panic(fmt.Sprintf("stat: %d values with %d weights", len(values), len(weights)))
	}
	type block struct {
		mean, weight float64
		length       int
	}
	var blocks []block
	for i, v := range values {
		b := block{mean: v, weight: 1, length: 1}
		if weights != nil {
			b.weight = weights[i]
		}
		for len(blocks) > 0 && blocks[len(blocks)-1].mean > b.mean {
			prev := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			w := prev.weight + b.weight
			b = block{(prev.mean*prev.weight + b.mean*b.weight) / w, w, prev.length + b.length}
		}
		blocks = append(blocks, b)
	}
	fit := make([]float64, 0, len(values))
	for _, b := range blocks {
		for range b.length {
			fit = append(fit, b.mean)
		}
	}
	return fit
}
