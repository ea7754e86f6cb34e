package measure_test

import (
	"crypto/sha512"
	"math/big"
	"math/bits"
	"testing"
)

// twister is CPython's random.Random(text): the Mersenne Twister MT19937 keyed
// by the text and its SHA-512, read as one big-endian integer whose 32-bit
// words, least significant first, go through init_by_array.
type twister struct {
	state [624]uint32
	at    int
}

func newTwister(text string) *twister {
	digest := sha512.Sum512([]byte(text))
	n := new(big.Int).SetBytes(append([]byte(text), digest[:]...))
	var key []uint32
	mask := big.NewInt(0xffffffff)
	for n.Sign() > 0 {
		key = append(key, uint32(new(big.Int).And(n, mask).Uint64()))
		n.Rsh(n, 32)
	}
	t := &twister{at: 624}
	t.seed(key)
	return t
}

func (t *twister) seed(key []uint32) {
	s := &t.state
	s[0] = 19650218
	for i := 1; i < 624; i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	i, j := 1, 0
	step := func(mult, add uint32, negative bool) {
		mixed := s[i] ^ (s[i-1]^s[i-1]>>30)*mult
		if negative {
			s[i] = mixed - uint32(i)
		} else {
			s[i] = mixed + add
		}
		if i++; i == 624 {
			s[0], i = s[623], 1
		}
	}
	for range max(624, len(key)) {
		step(1664525, key[j]+uint32(j), false)
		j = (j + 1) % len(key)
	}
	for range 623 {
		step(1566083941, 0, true)
	}
	s[0] = 0x80000000
}

func (t *twister) word() uint32 {
	if t.at == 624 {
		s := &t.state
		for i := range s {
			y := s[i]&0x80000000 | s[(i+1)%624]&0x7fffffff
			s[i] = s[(i+397)%624] ^ y>>1 ^ -(y&1)&0x9908b0df
		}
		t.at = 0
	}
	y := t.state[t.at]
	t.at++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// random is uniform in [0, 1) with 53 bits.
func (t *twister) random() float64 {
	a, b := t.word()>>5, t.word()>>6
	return (float64(a)*67108864 + float64(b)) / 9007199254740992
}

// below is uniform in 0..n-1.
func (t *twister) below(n int) int {
	k := bits.Len(uint(n))
	for {
		if v := int(t.word() >> (32 - k)); v < n {
			return v
		}
	}
}

func (t *twister) uniform(a, b float64) float64 { return a + (b-a)*t.random() }

func TestTwisterMatchesPublishedDraws(t *testing.T) {
	for text, want := range map[string]float64{
		"1337:search#1":   0.09476581009779816,
		"1337:search#1:1": 0.9856736912076348,
		"1337:echo#0:1":   0.6909288036994953,
		"42:search#61:1":  0.22544987385612658,
	} {
		if got := newTwister(text).random(); got != want {
			t.Errorf("first draw of %q is %v, want %v", text, got, want)
		}
	}
}
