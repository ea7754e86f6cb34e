package guard

import (
	"math/bits"
	"slices"

	"ordeal/metrics"
)

// gauge is a quantity a condition may limit: a share of the measured calls when
// counts is set, else a quantile of the latency of successes.
type gauge struct {
	name     string
	counts   func(metrics.Outcome) bool
	permille int64
}

// gauges in the order in which messages list them.
var gauges = allGauges()

// allGauges has a rate for each outcome that is a failure of the target's: ok is
// none, and what was cancelled or failed on our side is not measured.
func allGauges() []gauge {
	failed := func(o metrics.Outcome) bool { return o != metrics.OK }
	all := []gauge{{name: "error_rate", counts: failed}}
	for _, o := range metrics.Outcomes() {
		if o.Measured() && failed(o) {
			all = append(all, gauge{name: o.String() + "_rate", counts: func(x metrics.Outcome) bool { return x == o }})
		}
	}
	return append(all,
		gauge{name: "p50", permille: 500}, gauge{name: "p90", permille: 900}, gauge{name: "p95", permille: 950},
		gauge{name: "p99", permille: 990}, gauge{name: "p999", permille: 999}, gauge{name: "max", permille: 1000})
}

func gaugeNamed(name string) (gauge, bool) {
	i := slices.IndexFunc(gauges, func(g gauge) bool { return g.name == name })
	if i < 0 {
		return gauge{}, false
	}
	return gauges[i], true
}

func gaugeNames() []string {
	names := make([]string, len(gauges))
	for i, g := range gauges {
		names[i] = g.name
	}
	return names
}

func (g gauge) rate() bool { return g.counts != nil }

// read is the value over what was seen, in the unit of a limit, and the number
// of calls behind it: measured ones of a rate, successes of a latency. A rate is
// rounded up when up is set, else down, so that comparing it with a limit is
// exact whatever the denominator: k/n > l if and only if ceil(k*1e9/n) > l*1e9,
// and likewise for >= with the floor.
func (g gauge) read(s *seen, up bool) (value, n int64) {
	if !g.rate() {
		return s.latency.Quantile(g.permille), s.latency.N()
	}
	var k int64
	for o, c := range s.outcomes {
		if o.Measured() {
			n += c
			if g.counts(o) {
				k += c
			}
		}
	}
	return part(k, n, up), n
}

// part is k/n in parts per 10^9; 0 when n is not positive.
func part(k, n int64, up bool) int64 {
	if n <= 0 || k <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(min(k, n)), one)
	value, rest := bits.Div64(hi, lo, uint64(n))
	if up && rest > 0 {
		value++
	}
	return int64(value)
}
