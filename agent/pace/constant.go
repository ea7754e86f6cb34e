package pace

import (
	"math"
	"math/bits"
	"time"
)

// Constant is a constant arrival rate: arrival i is due at exactly
// i*1e9/MilliRate whole microseconds, rounded down, never accumulated.
type Constant struct {
	MilliRate int64         // thousandths of an arrival per second; 0 or less: everything at once
	Count     uint64        // arrivals; 0 = no limit
	Length    time.Duration // arrivals due from here on do not belong to it; 0 = no limit
}

// Due is the time of arrival i.
func (c Constant) Due(i uint64) (time.Duration, bool) {
	if c.Count > 0 && i >= c.Count {
		return 0, false
	}
	due, fits := c.at(i)
	if !fits || c.Length > 0 && due >= c.Length {
		return 0, false
	}
	return due, true
}

// at is false for arrivals beyond the range of a Duration, 292 years.
func (c Constant) at(i uint64) (time.Duration, bool) {
	if c.MilliRate <= 0 {
		return 0, true
	}
	hi, lo := bits.Mul64(i, 1e9)
	if hi >= uint64(c.MilliRate) {
		return 0, false
	}
	us, _ := bits.Div64(hi, lo, uint64(c.MilliRate))
	if us > math.MaxInt64/uint64(time.Microsecond) {
		return 0, false
	}
	return time.Duration(us) * time.Microsecond, true
}
