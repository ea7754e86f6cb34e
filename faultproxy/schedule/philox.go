package schedule

import "math/bits"

// Constants of Philox4x64 (Salmon et al. 2011, "Parallel Random Numbers: As
// Easy as 1, 2, 3"): the two multipliers and the Weyl increments of the key.
const (
	philoxM0 = 0xD2E7470EE14C6C93
	philoxM1 = 0xCA5A826395121157
	philoxW0 = 0x9E3779B97F4A7C15
	philoxW1 = 0xBB67AE8584CAA73B

	philoxRounds = 10
)

// philox encrypts a counter under a key with ten rounds of Philox4x64. Every
// counter gives four words that are independent of those of any other counter,
// which is what lets a draw be looked up instead of drawn in order.
func philox(ctr [4]uint64, key [2]uint64) [4]uint64 {
	x0, x1, x2, x3 := ctr[0], ctr[1], ctr[2], ctr[3]
	k0, k1 := key[0], key[1]
	for range philoxRounds {
		hi0, lo0 := bits.Mul64(philoxM0, x0)
		hi1, lo1 := bits.Mul64(philoxM1, x2)
		x0, x1, x2, x3 = hi1^x1^k0, lo1, hi0^x3^k1, lo0
		k0 += philoxW0
		k1 += philoxW1
	}
	return [4]uint64{x0, x1, x2, x3}
}
