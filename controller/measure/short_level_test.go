package measure_test

import "testing"

// A level with fewer requests than callers was never reached: it is no evidence
// of what the target sustains.
func TestShortLevelIsNotSustained(t *testing.T) {
	in := world()
	st := in.Summary.OfProbe("concurrency")
	last := st[len(st)-1]
	last.Level, last.Tally = 64, tallyOf(good(0), good(1), good(2), good(3), good(4))
	p := probesOf(in)["concurrency"]
	if n, ok := p.Metrics["max_sustained_concurrency"].Number(); !ok || n >= 64 {
		t.Errorf("max_sustained_concurrency %v from 5 requests at 64 callers (%s)", p.Metrics["max_sustained_concurrency"].Value, p.Summary)
	}
}
