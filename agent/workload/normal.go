package workload

import (
	"math"
	"math/bits"

	"ordeal/faultproxy/schedule"
)

// A normal draw is looked up, not computed: the logarithms and exponentials of
// the usual methods differ in the last bit from one processor to another, and
// then so would the arguments of a call. What is left is integers, and floating
// point whose every step is rounded the same everywhere: + - * / and the square
// root, each in a conversion of its own so that no two are fused.

// microSD is the unit of a standard normal draw: millionths of the standard deviation.
const microSD = 1_000_000

// The tail of the normal distribution is cut into octaves, each of half the
// probability of the one before, and each octave into cells of equal probability.
const (
	normalOctaves = 32
	normalCells   = 16
)

// standard maps a uniform word to a standard normal draw in microSD, from
// -6.34 to 6.34 standard deviations; straight lines between the borders of the
// cells are off by less than 0.001.
func standard(w uint64) int64 {
	u := w << 1 // fraction of the half that the first bit chooses
	octave := min(bits.LeadingZeros64(u), normalOctaves-1)
	u <<= octave // 1xxxx..., below that in the last octave
	cell := uint64(0)
	if u >= 1<<63 {
		cell = u << 1 >> 60
	}
	j := octave*normalCells + normalCells - 1 - int(cell)
	inner, outer := int64(normalBorders[j]), int64(normalBorders[j+1])
	rest, _ := bits.Mul64(u<<5, uint64(outer-inner)+1)
	z := outer - int64(rest)
	if w>>63 == 1 {
		return -z
	}
	return z
}

// normal is mean + z standard deviations.
func normal(mean, sd float64, z int64) float64 {
	return mean + float64(sd*float64(float64(z)/microSD))
}

// p95SD is the 95th percentile of the standard normal distribution.
const p95SD = 1_644_854 // microSD

// logNormal is a log-normal distribution with a median and a 95th percentile.
type logNormal struct {
	median float64
	// powers are (p95/median) to the 2^(i-powerBits): whole powers by
	// multiplication, broken ones by square roots.
	powers [powerBits + 2]float64
}

const powerBits = 20

func newLogNormal(median, p95 float64) *logNormal {
	l := &logNormal{median: median}
	l.powers[powerBits] = p95 / median
	l.powers[powerBits+1] = l.powers[powerBits] * l.powers[powerBits]
	for i := powerBits - 1; i >= 0; i-- {
		l.powers[i] = math.Sqrt(l.powers[i+1])
	}
	return l
}

// at is the value z standard deviations from the middle.
func (l *logNormal) at(z int64) float64 {
	exponent := uint64(max(z, -z)) << powerBits / p95SD // below 4 in whole units
	factor := 1.0
	for i := range l.powers {
		if exponent>>i&1 == 1 {
			factor = float64(factor * l.powers[i])
		}
	}
	if z < 0 {
		return l.median / factor
	}
	return float64(l.median * factor)
}

// between is a uniform number from lo up to hi.
func between(w uint64, lo, hi float64) float64 {
	return lo + float64((hi-lo)*float64(float64(w>>11)/(1<<53)))
}

// whole rounds a length to a whole number within bounds; infinity is hi.
func whole(v float64, lo, hi int64) int64 {
	if v >= float64(hi) {
		return hi
	}
	if v <= float64(lo) {
		return lo
	}
	return int64(v + 0.5)
}

// textLength is the distribution of the length of a text.
type textLength struct {
	mean, sd float64
	spread   *logNormal // in place of mean and sd
	min, max int64
}

func (l *textLength) draw(s schedule.Stream, op uint64, lane schedule.Lane, key schedule.RuleKey) int64 {
	switch {
	case l.min == l.max:
		return l.min
	case l.spread != nil:
		return whole(l.spread.at(standard(s.Draw(key, op, 0, lane))), l.min, l.max)
	}
	return whole(normal(l.mean, l.sd, standard(s.Draw(key, op, 0, lane))), l.min, l.max)
}
