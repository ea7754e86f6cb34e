package stat

import "math"

// MeanInterval returns Student's t interval of a mean from its moments: n
// values with the given mean and sample standard deviation (divisor n-1). It
// holds for values near normal or for n of some dozens, as token counts are;
// a heavy-tailed latency wants QuantileRanks. Fewer than two values bound
// nothing.
func MeanInterval(n int64, mean, stdev, conf float64) Interval {
	checkLevel("confidence", conf)
	if n < 2 {
		return Interval{Lo: math.Inf(-1), Hi: math.Inf(1)}
	}
	half := studentT(float64(n-1), conf) * stdev / math.Sqrt(float64(n))
	return Interval{Lo: mean - half, Hi: mean + half}
}

// studentT returns the t with P(|T| <= t) = conf at the given degrees of
// freedom. t²/(df+t²) follows Beta(1/2, df/2).
func studentT(df, conf float64) float64 {
	y := betaQuantile(0.5, df/2, conf)
	return math.Sqrt(df * y / (1 - y))
}
