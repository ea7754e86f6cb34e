package stat

import "math"

// incompleteBeta returns both tails of the beta distribution at x, with y=1-x
// given apart so that an x near 1 loses nothing: lower = I_x(a, b) and
// upper = I_y(b, a). The smaller tail is computed, the other is its complement,
// so small tails keep their relative accuracy. a and b must be positive.
func incompleteBeta(a, b, x, y float64) (lower, upper float64) {
	if x <= 0 {
		return 0, 1
	}
	if y <= 0 {
		return 1, 0
	}
	front := betaPower(a, b, x, y)
	if x < (a+1)/(a+b+2) {
		lower = front * betaFraction(a, b, x, y)
		return lower, 1 - lower
	}
	upper = front * betaFraction(b, a, y, x)
	return 1 - upper, upper
}

// betaFraction evaluates I_x(a, b) B(a, b) / (x^a y^b) by the continued fraction
// of DiDonato and Morris (1992, "Significant Digit Computation of the
// Incomplete Beta Function Ratios", equation 9) with the modified Lentz method.
// It contracts the textbook fraction (DLMF 8.17.22) to its even part, which
// sees x only through the distance to the mean and so does not cancel for an x
// next to 1. Below the mean, where incompleteBeta calls it, it needs about
// sqrt(max(a, b)) steps at most.
func betaFraction(a, b, x, y float64) float64 {
	fromMean := a - (a+b)*x
	if x > y {
		fromMean = (a+b)*y - b
	}
	f := a / (a + 1) * (fromMean + 1)
	c, d := f, 0.0
	limit := 1000 + 50*math.Sqrt(max(a, b))
	for n := 1.0; n < limit; n++ {
		odd := a + 2*n - 1
		wide := n * (b - n) * x / odd
		alpha := (a + n - 1) * (a + b + n - 1) / odd * x * wide
		beta := n + wide + (a+n)/(odd+2)*(fromMean+1+n*(1+y))
		d = 1 / (beta + alpha*d)
		c = beta + alpha/c
		f *= c * d
		if math.Abs(c*d-1) < 5e-16 {
			break
		}
	}
	return 1 / f
}

// betaPower returns x^a y^b / B(a, b), through the binomial density at a of
// a+b trials: the two differ by the factor ab/(a+b).
func betaPower(a, b, x, y float64) float64 {
	n := a + b
	logDensity := stirlingError(n) - stirlingError(a) - stirlingError(b) - deviance(a, n*x) - deviance(b, n*y)
	return math.Sqrt(a*b/(2*math.Pi*n)) * math.Exp(logDensity)
}

// stirlingError returns ln(x!) minus Stirling's formula, for x > 0.
func stirlingError(x float64) float64 {
	if x < 16 {
		lg, _ := math.Lgamma(x + 1)
		return lg - (x+0.5)*math.Log(x) + x - 0.5*math.Log(2*math.Pi)
	}
	x2 := x * x
	return (1./12 - (1./360-(1./1260-(1./1680-(1./1188-691./360360/x2)/x2)/x2)/x2)/x2) / x
}

// deviance returns x ln(x/m) + m - x without the cancellation that the plain
// formula suffers when x is near m (Loader's bd0).
func deviance(x, m float64) float64 {
	if math.Abs(x-m) >= 0.1*(x+m) {
		return x*math.Log(x/m) + m - x
	}
	v := (x - m) / (x + m)
	sum, term := (x-m)*v, 2*x*v
	for j := 3.0; ; j += 2 {
		term *= v * v
		next := sum + term/j
		if next == sum {
			return sum
		}
		sum = next
	}
}

// betaQuantile returns the x with I_x(a, b) = p: Newton steps on the
// distribution function, halving the bracket whenever a step leaves it.
func betaQuantile(a, b, p float64) float64 {
	lo, hi, x := 0.0, 1.0, a/(a+b)
	for range 200 {
		lower, _ := incompleteBeta(a, b, x, 1-x)
		excess := lower - p
		if excess > 0 {
			hi = x
		} else {
			lo = x
		}
		next := x - excess*x*(1-x)/betaPower(a, b, x, 1-x)
		if math.Abs(next-x) <= 4e-16*x {
			return next
		}
		if !(next > lo && next < hi) { // also true for the NaN of a vanished density
			next = lo + (hi-lo)/2
		}
		x = next
	}
	return x
}

// binomialUpper returns P(X >= k) for X binomial with n trials of chance q;
// notQ is 1-q.
func binomialUpper(k, n int64, q, notQ float64) float64 {
	if k <= 0 {
		return 1
	}
	if k > n {
		return 0
	}
	lower, _ := incompleteBeta(float64(k), float64(n-k+1), q, notQ)
	return lower
}

// binomialLower returns P(X <= k) for the same X.
func binomialLower(k, n int64, q, notQ float64) float64 {
	return binomialUpper(n-k, n, notQ, q)
}
