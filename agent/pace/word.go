package pace

import "math/bits"

// word is an unsigned integer of 128 bits. Overflow is the caller's business: the
// limits of a Profile keep all of its products below 2^126.
type word struct{ hi, lo uint64 }

func product(a, b uint64) word {
	hi, lo := bits.Mul64(a, b)
	return word{hi, lo}
}

func (a word) plus(b word) word {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return word{hi, lo}
}

// minus is a-b, for b up to a.
func (a word) minus(b word) word {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return word{hi, lo}
}

func (a word) times(b uint64) word {
	hi, lo := bits.Mul64(a.lo, b)
	return word{hi + a.hi*b, lo}
}

// over is a/b rounded up.
func (a word) over(b uint64) word {
	up := a.plus(word{lo: b - 1})
	hi, rest := bits.Div64(0, up.hi, b)
	lo, _ := bits.Div64(rest, up.lo, b)
	return word{hi, lo}
}

func (a word) less(b word) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// float is near a; for estimates that are corrected afterwards.
func (a word) float() float64 { return float64(a.hi)*(1<<64) + float64(a.lo) }
