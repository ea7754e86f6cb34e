package guard

import (
	"math"
	"testing"
	"time"
)

const second = time.Second

func TestQuotaOpen(t *testing.T) {
	q := NewQuota(0)
	if n, wait := q.Grant(0, "a", 1<<40); n != 1<<40 || wait != 0 {
		t.Errorf("open: %d, %v", n, wait)
	}
	if _, _, limited := q.Limited(); limited {
		t.Error("limited before any signal")
	}
	for _, none := range []int64{0, -1} {
		if n, wait := q.Grant(0, "a", none); n != 0 || wait != 0 {
			t.Errorf("asked for %d: %d, %v", none, n, wait)
		}
	}
}

// TestQuotaSignals: the rate and the end of the pause after a series of signals.
func TestQuotaSignals(t *testing.T) {
	type signal struct {
		at time.Duration
		Signal
	}
	plain := func(rate float64) Signal { return Signal{Rate: rate} }
	named := func(limit int64, window time.Duration, rate float64) Signal {
		return Signal{RetryAfter: 2 * second, Limit: limit, Window: window, Rate: rate}
	}
	rows := []struct {
		name    string
		signals []signal
		rate    float64
		until   time.Duration
	}{
		{"First", []signal{{10 * second, plain(200)}}, 100, 11 * second},
		{"RetryAfter", []signal{{10 * second, Signal{RetryAfter: 7 * second, Rate: 200}}}, 100, 17 * second},
		{"RetryAfterBounded", []signal{{10 * second, Signal{RetryAfter: 24 * time.Hour, Rate: 200}}}, 100, 70 * second},
		{"NegativeRetryAfter", []signal{{10 * second, Signal{RetryAfter: -second, Rate: 200}}}, 100, 11 * second},
		{"Named", []signal{{10 * second, named(6000, time.Minute, 300)}}, 95, 12 * second},
		{"NamedWithoutRate", []signal{{10 * second, named(6000, time.Minute, 0)}}, 95, 12 * second},
		{"NamedBelowAnything", []signal{{10 * second, named(1, 24*time.Hour, 300)}}, 0.95 / 86400, 12 * second},
		{"NamedFarAboveWhatWasRefused", []signal{{10 * second, named(1000, second, 100)}}, 50, 12 * second},
		{"NamedWithoutWindow", []signal{{10 * second, named(1000, 0, 100)}}, 50, 12 * second},
		{"NamedWithoutSense", []signal{{10 * second, named(math.MaxInt64, 1, 0)}}, maxRate, 12 * second},
		{"RateUnknown", []signal{{10 * second, plain(0)}}, 1, 11 * second},
		{"RateNotANumber", []signal{{10 * second, plain(math.NaN())}}, 1, 11 * second},
		{"RateEndless", []signal{{10 * second, plain(math.Inf(1))}}, maxRate / 2, 11 * second},
		{"RateNegative", []signal{{10 * second, plain(-3)}}, 1, 11 * second},
		{"Later", []signal{{10 * second, plain(200)}, {11 * second, plain(1)}}, 70, 12 * second},
		{"LaterSaysAge", []signal{{10 * second, plain(200)}, {11050 * time.Millisecond, Signal{Age: 50 * time.Millisecond}}}, 70, 12050 * time.Millisecond},
		{"EchoInPause", []signal{{10 * second, plain(200)}, {10100 * time.Millisecond, plain(200)}}, 100, 11 * second},
		{"EchoAfterPause", []signal{{10 * second, plain(200)}, {12 * second, Signal{Age: 1001 * time.Millisecond}}}, 100, 11 * second},
		{"EchoProlongs", []signal{{10 * second, plain(200)}, {10100 * time.Millisecond, Signal{RetryAfter: 3 * second}}}, 100, 13100 * time.Millisecond},
		{"EchoDoesNotShorten", []signal{{10 * second, Signal{RetryAfter: 5 * second, Rate: 200}}, {11 * second, Signal{RetryAfter: second}}}, 100, 15 * second},
		{"EchoPausesAgain", []signal{{10 * second, plain(200)}, {12 * second, Signal{RetryAfter: second, Age: 2 * second}}}, 100, 13 * second},
		{"EchoNamesLimit", []signal{{10 * second, plain(400)}, {10100 * time.Millisecond, named(100, second, 400)}}, 95, 12100 * time.Millisecond},
		{"AgeFromTheFuture", []signal{{10 * second, plain(200)}, {10100 * time.Millisecond, Signal{Age: -time.Hour}}}, 100, 11 * second},
		{"NamedDoesNotHold", []signal{{10 * second, named(100, second, 300)}, {12 * second, named(100, second, 90)}}, 0.7 * 95, 14 * second},
		{"NamedLowerLater", []signal{{10 * second, named(100, second, 300)}, {12 * second, named(20, second, 90)}}, 19, 14 * second},
		{"NamedHigherLaterDoesNotRaise", []signal{{10 * second, named(20, second, 300)}, {12 * second, named(100, second, 19)}}, 0.7 * 19, 14 * second},
		{"NotBelowTheFloor", []signal{{10 * second, plain(0.15)}, {11 * second, plain(0)}}, 0.1, 12 * second},
		{"FloorDoesNotRaise", []signal{{10 * second, named(1, time.Minute, 1)}, {12 * second, plain(1)}}, 0.95 / 60, 13 * second},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			q := NewQuota(0)
			for _, s := range r.signals {
				q.Seen(s.at, s.Signal)
			}
			rate, until, limited := q.Limited()
			if math.Abs(rate-r.rate) > 1e-9*r.rate || until != r.until || !limited {
				t.Errorf("rate %v until %v, %v; want %v until %v", rate, until, limited, r.rate, r.until)
			}
		})
	}
}

// TestQuotaShut: a target that refuses soon after each pause and names no wait
// gets longer pauses from the fourth on; one that lets the fleet run does not.
func TestQuotaShut(t *testing.T) {
	q, now := NewQuota(0), time.Duration(0)
	for i, want := range []time.Duration{1, 1, 1, 1, 2, 4, 8, 16, 32, 60, 60} {
		q.Seen(now, Signal{Rate: 1000})
		_, until, _ := q.Limited()
		if until-now != want*second {
			t.Errorf("pause %d is %v, want %v", i+1, until-now, want*second)
		}
		now = until + 900*time.Millisecond
	}
	now += second
	q.Seen(now, Signal{Rate: 1000})
	if _, until, _ := q.Limited(); until-now != second {
		t.Errorf("pause after a while of peace is %v, want 1s", until-now)
	}
}

// TestQuotaRate follows the rate of a fleet that uses all it gets.
func TestQuotaRate(t *testing.T) {
	rows := []struct {
		name  string
		first Signal
		want  map[int]float64 // seconds after the pause → calls/s
	}{
		{"Unnamed", Signal{Rate: 200}, map[int]float64{0: 100, 1: 116, 5: 180, 10: 189, 15: 198, 60: 279}},
		{"Named", Signal{Rate: 200, Limit: 100, Window: second}, map[int]float64{0: 95, 5: 95, 60: 95}},
		{"NamedButHigher", Signal{Rate: 200, Limit: 500, Window: second}, map[int]float64{0: 100, 5: 180, 60: 279}},
		{"NamedCaps", Signal{Rate: 200, Limit: 430, Window: second}, map[int]float64{0: 100, 5: 180, 300: 0.95 * 430}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			q := NewQuota(0)
			q.Seen(0, r.first)
			_, start, _ := q.Limited()
			for now := start; now <= start+300*second; now += 10 * time.Millisecond {
				q.Grant(now, "a", 1000)
				want, ok := r.want[int((now-start)/second)]
				if !ok || (now-start)%second != 0 {
					continue
				}
				if rate, _, _ := q.Limited(); math.Abs(rate-want) > 0.01*want {
					t.Errorf("%v after the pause: %.2f calls/s, want %v", now-start, rate, want)
				}
			}
		})
	}
}

// TestQuotaUnusedRateDoesNotGrow: a fleet that needs little learns nothing about
// the limit.
func TestQuotaUnusedRateDoesNotGrow(t *testing.T) {
	for _, gap := range []time.Duration{50 * time.Millisecond, second, 30 * second} {
		q := NewQuota(0)
		q.Seen(0, Signal{Rate: 200})
		for now := second; now < 600*second; now += gap {
			q.Grant(now, "a", 1)
		}
		if rate, _, _ := q.Limited(); rate > 102 {
			t.Errorf("one call every %v: rate grew from 100 to %v", gap, rate)
		}
	}
}
