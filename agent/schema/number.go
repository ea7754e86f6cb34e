package schema

import "math/big"

// span is the set of numbers that the numeric keywords of a place admit.
type span struct {
	low, high         *big.Rat // nil: unbounded
	lowOpen, highOpen bool     // the bound itself is excluded
	step              *big.Rat // nil: any number; otherwise its multiples only
}

const maxStepBits = 4096 // beyond it multiples are not worked out

func ratInt(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func (s *span) raise(bound *big.Rat, open bool) {
	if bound == nil {
		return
	}
	if s.low == nil || bound.Cmp(s.low) > 0 {
		s.low, s.lowOpen = bound, open
	} else if bound.Cmp(s.low) == 0 {
		s.lowOpen = s.lowOpen || open
	}
}

func (s *span) lower(bound *big.Rat, open bool) {
	if bound == nil {
		return
	}
	if s.high == nil || bound.Cmp(s.high) < 0 {
		s.high, s.highOpen = bound, open
	} else if bound.Cmp(s.high) == 0 {
		s.highOpen = s.highOpen || open
	}
}

func (s *span) admits(v *big.Rat) bool {
	if s.low != nil {
		if c := v.Cmp(s.low); c < 0 || c == 0 && s.lowOpen {
			return false
		}
	}
	if s.high != nil {
		if c := v.Cmp(s.high); c > 0 || c == 0 && s.highOpen {
			return false
		}
	}
	return s.step == nil || new(big.Rat).Quo(v, s.step).IsInt()
}

// values proposes up to n admitted numbers: the lower bound or, without one, 1 come first.
func (s *span) values(n int) []*big.Rat {
	start := ratInt(1)
	if s.low != nil {
		start = s.low
	} else if s.high != nil && s.high.Cmp(start) < 0 {
		start = s.high
	}
	step := s.step
	if step == nil {
		step = ratInt(1)
		if s.low != nil && s.high != nil {
			// A narrow span without multiples is walked in eighths of its width.
			if eighth := new(big.Rat).Quo(new(big.Rat).Sub(s.high, s.low), ratInt(8)); eighth.Sign() > 0 && eighth.Cmp(step) < 0 {
				step = eighth
			}
		}
	} else {
		start = roundUp(start, step)
	}
	var out []*big.Rat
	for _, v := range walkBoth(start, step, n+2) {
		if s.admits(v) && len(out) < n {
			out = append(out, v)
		}
	}
	return out
}

// walkBoth lists start, then numbers above it, then numbers below it.
func walkBoth(start, step *big.Rat, n int) []*big.Rat {
	out := []*big.Rat{start}
	for dir := int64(1); dir >= -1; dir -= 2 {
		for i := 1; i <= n; i++ {
			d := new(big.Rat).Mul(step, ratInt(dir*int64(i)))
			out = append(out, d.Add(d, start))
		}
	}
	return out
}

// roundUp gives the smallest multiple of step that is not below v.
func roundUp(v, step *big.Rat) *big.Rat {
	q := new(big.Rat).Quo(v, step)
	n, rem := new(big.Int).DivMod(q.Num(), q.Denom(), new(big.Int))
	if rem.Sign() != 0 {
		n.Add(n, big.NewInt(1))
	}
	return new(big.Rat).Mul(new(big.Rat).SetInt(n), step)
}

// commonMultiple gives the least number that both divide; nil stands for no demand.
func commonMultiple(a, b *big.Rat) *big.Rat {
	if b == nil || b.Sign() <= 0 {
		return a
	}
	if a == nil {
		return b
	}
	// lcm(p/q, r/s) = lcm(p·s, r·q) / (q·s)
	x := new(big.Int).Mul(a.Num(), b.Denom())
	y := new(big.Int).Mul(b.Num(), a.Denom())
	if x.BitLen()+y.BitLen() > maxStepBits {
		return a
	}
	gcd := new(big.Int).GCD(nil, nil, x, y)
	lcm := x.Mul(x.Div(x, gcd), y)
	return new(big.Rat).SetFrac(lcm, new(big.Int).Mul(a.Denom(), b.Denom()))
}
