package pace

import (
	"crypto/sha256"
	"math/bits"
	"math/rand/v2"
	"time"
)

// Poisson is the arrivals of a profile that do not know of each other: gaps are
// exponential where the rate is even, and however the rate changes the number of
// arrivals of any stretch has the integral of the rate as its mean and variance.
// Arrival i is due where the integral reaches the sum of the first i+1 unit gaps of
// the seed. Gaps are whole billionths of the mean one.
//
// Everybody who knows the seed draws the same arrivals. Due is made to be asked in
// ascending order: an earlier arrival than the last one is found by starting over.
// Not safe for concurrent use.
type Poisson struct {
	profile Profile
	seed    [sha256.Size]byte
	source  *rand.ChaCha8
	drawn   uint64 // gaps
	sum     word   // of these, in billionths
}

// NewPoisson draws arrivals of a profile. Any text is a seed.
func NewPoisson(seed string, p Profile) *Poisson {
	key := sha256.Sum256([]byte("arrivals/v1\x00" + seed))
	return &Poisson{profile: p, seed: key, source: rand.NewChaCha8(key)}
}

// Due is the time of arrival i.
func (p *Poisson) Due(i uint64) (time.Duration, bool) {
	if i+1 < p.drawn {
		p.source.Seed(p.seed)
		p.drawn, p.sum = 0, word{}
	}
	for p.drawn <= i {
		p.sum = p.sum.plus(word{lo: p.gap()})
		p.drawn++
	}
	return p.profile.at(p.sum.times(perUnit / billion))
}

const billion = 1_000_000_000

// gap draws from the exponential distribution of mean 1, in billionths, rounded
// down. It is von Neumann's method, which only compares uniform words, so no two
// machines can differ in the last digit of a logarithm: the first of a falling run
// of uniform numbers is kept when the run has an odd length, and each run that has
// not adds 1.
func (p *Poisson) gap() uint64 {
	for whole := uint64(0); ; whole += billion {
		first := p.source.Uint64()
		odd := true
		for last, next := first, p.source.Uint64(); next < last; last, next = next, p.source.Uint64() {
			odd = !odd
		}
		if odd {
			part, _ := bits.Mul64(first, billion)
			return whole + part
		}
	}
}
