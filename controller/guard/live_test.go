package guard

import (
	"math/rand/v2"
	"testing"
	"time"

	"ordeal/metrics"
)

// sample has ok calls of the given latencies, in ms, and other outcomes.
func sample(others metrics.Counts, ms ...int64) Sample {
	s := Sample{Outcomes: metrics.Counts{metrics.OK: int64(len(ms))}}
	for o, n := range others {
		s.Outcomes[o] += n
	}
	for _, v := range ms {
		s.Latency.Record(v * 1000)
	}
	return s
}

func times(n int, ms int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = ms
	}
	return all
}

type added struct {
	at time.Duration
	Sample
}

func TestLiveCheck(t *testing.T) {
	const s = time.Second
	failing := func(n int64) Sample { return sample(metrics.Counts{metrics.ServerError: n}) }
	rows := []struct {
		name       string
		conditions []string
		samples    []added
		now        time.Duration
		want       string // empty = does not trip
	}{
		{"Trips", []string{"error_rate>0.5/10s"},
			[]added{{9 * s, sample(metrics.Counts{metrics.ServerError: 769}, times(471, 5)...)}}, 10 * s,
			"stop: error_rate 0.62 > 0.5 over 10s (n=1240)"},
		{"WindowNotYetSeen", []string{"error_rate>0.5/10s"}, []added{{9 * s, failing(1000)}}, 10*s - 1, ""},
		{"TooFewCalls", []string{"error_rate>0.5/10s"}, []added{{9 * s, failing(19)}}, 10 * s, ""},
		{"EnoughCalls", []string{"error_rate>0.5/10s"}, []added{{9 * s, failing(20)}}, 10 * s, "stop: error_rate 1 > 0.5 over 10s (n=20)"},
		{"UnmeasuredDoNotCount", []string{"error_rate>0/10s"},
			[]added{{9 * s, sample(metrics.Counts{metrics.Cancelled: 500, metrics.HarnessError: 500}, times(30, 5)...)}}, 10 * s, ""},
		{"AtTheLimit", []string{"error_rate>0.1/10s"},
			[]added{{9 * s, sample(metrics.Counts{metrics.Timeout: 3}, times(27, 5)...)}}, 10 * s, ""},
		{"AtTheLimitOrEqual", []string{"error_rate>=0.1/10s"},
			[]added{{9 * s, sample(metrics.Counts{metrics.Timeout: 3}, times(27, 5)...)}}, 10 * s,
			"stop: error_rate 0.1 >= 0.1 over 10s (n=30)"},
		{"JustAboveShowsIt", []string{"error_rate>0.5/10s"},
			[]added{{9 * s, sample(metrics.Counts{metrics.Timeout: 5001}, times(4999, 5)...)}}, 10 * s,
			"stop: error_rate 0.5001 > 0.5 over 10s (n=10000)"},
		{"ThirdIsAboveItsNineDigits", []string{"error_rate>0.333333333/10s"},
			[]added{{9 * s, sample(metrics.Counts{metrics.Timeout: 10}, times(20, 5)...)}}, 10 * s,
			"stop: error_rate 0.333333334 > 0.333333333 over 10s (n=30)"},
		{"OneOutcomeAlone", []string{"timeout_rate>0.2/10s", "rate_limited_rate>0.2/10s"},
			[]added{{9 * s, sample(metrics.Counts{metrics.Timeout: 4, metrics.RateLimited: 6}, times(10, 5)...)}}, 10 * s,
			"stop: rate_limited_rate 0.3 > 0.2 over 10s (n=20)"},
		{"FirstInOrderWins", []string{"connection_rate>0.1/5s", "error_rate>0.1/10s"},
			[]added{{9 * s, sample(metrics.Counts{metrics.Connection: 40}, times(10, 5)...)}}, 10 * s,
			"stop: connection_rate 0.8 > 0.1 over 5s (n=50)"},
		{"SecondWindowYoungerThanRun", []string{"error_rate>0.1/1m", "error_rate>0.2/5s"}, []added{{9 * s, failing(50)}}, 10 * s,
			"stop: error_rate 1 > 0.2 over 5s (n=50)"},
		{"OldFailuresLeave", []string{"error_rate>0.5/10s"},
			[]added{{9 * s, failing(1000)}, {20 * s, sample(nil, times(50, 5)...)}}, 20 * s, ""},
		{"NothingSeen", []string{"error_rate>0.5/10s", "p95>1ms/10s"}, nil, time.Hour, ""},
		{"Silence", []string{"error_rate>0.5/10s"}, []added{{9 * s, failing(1000)}}, 30 * s, ""},
		{"LateSampleCounts", []string{"error_rate>0.5/10s"},
			[]added{{19 * s, sample(nil, times(10, 5)...)}, {12 * s, failing(90)}}, 20 * s,
			"stop: error_rate 0.9 > 0.5 over 10s (n=100)"},
		{"TooLateSampleDoesNot", []string{"error_rate>0.5/10s"},
			[]added{{19 * s, sample(nil, times(10, 5)...)}, {7 * s, failing(90)}}, 20 * s, ""},
		{"SampleOfALapAgoDoesNot", []string{"error_rate>0.5/10s"},
			[]added{{19500 * time.Millisecond, sample(nil, times(10, 5)...)}, {8 * s, failing(90)}}, 20 * s, ""},
		{"EarlySampleWaits", []string{"error_rate>0.5/10s"}, []added{{10900 * time.Millisecond, failing(90)}}, 10 * s, ""},
		{"BeforeTheStart", []string{"error_rate>0.5/1s"}, []added{{-5 * s, failing(90)}}, s,
			"stop: error_rate 1 > 0.5 over 1s (n=90)"},
		{"Percentile", []string{"p95>500ms/30s"},
			[]added{{25 * s, sample(nil, append(times(90, 20), times(10, 612)...)...)}}, 30 * s,
			"stop: p95 612ms > 500ms over 30s (n=100)"},
		// The mean of the agents' p50 is 505 ms.
		{"PercentileOfAllNotMeanOfEach", []string{"p50>500ms/30s"},
			[]added{{25 * s, sample(nil, times(100, 10)...)}, {25 * s, sample(nil, times(30, 1000)...)}}, 30 * s, ""},
		{"PercentileAcrossSlots", []string{"p50>=1s/30s"},
			[]added{{2 * s, sample(nil, times(100, 10)...)}, {29 * s, sample(nil, times(101, 1000)...)}}, 30 * s,
			"stop: p50 1s >= 1s over 30s (n=201)"},
		{"LatencyCountsSuccesses", []string{"max>500ms/30s"},
			[]added{{25 * s, sample(metrics.Counts{metrics.Timeout: 500}, times(19, 900)...)}}, 30 * s, ""},
		{"Max", []string{"max>500ms/30s"},
			[]added{{25 * s, sample(nil, append(times(99, 20), 501)...)}}, 30 * s,
			"stop: max 501ms > 500ms over 30s (n=100)"},
		{"P999", []string{"p999>500ms/30s"},
			[]added{{25 * s, sample(nil, append(times(999, 20), 900)...)}}, 30 * s, ""},
		{"NegativeCountsIgnored", []string{"error_rate>0.5/10s"},
			[]added{{9 * s, sample(metrics.Counts{metrics.ServerError: 30, metrics.ToolError: -29}, times(10, 5)...)}}, 10 * s,
			"stop: error_rate 0.75 > 0.5 over 10s (n=40)"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			l := NewLive(conditions(t, r.conditions...), 0)
			for _, a := range r.samples {
				l.Add(a.at, a.Sample)
			}
			for range 2 { // looking changes nothing
				got, tripped := l.Check(r.now)
				if tripped != (r.want != "") || tripped && got.String() != r.want {
					t.Errorf("Check = %v, %q; want %q", tripped, got, r.want)
				}
			}
		})
	}
}

func conditions(t testing.TB, texts ...string) []Condition {
	t.Helper()
	var all []Condition
	for _, text := range texts {
		all = append(all, condition(t, text))
	}
	return all
}

func TestLiveWithoutConditions(t *testing.T) {
	for _, l := range []*Live{NewLive(nil, 0), NewLive([]Condition{{}}, 0)} {
		l.Add(0, sample(metrics.Counts{metrics.Timeout: 100}))
		if got, tripped := l.Check(time.Hour); tripped {
			t.Errorf("tripped on %v", got)
		}
	}
}

func TestMinCalls(t *testing.T) {
	for minCalls, want := range map[int64]bool{-1: false, 0: false, 3: true, 4: false} {
		l := NewLive(conditions(t, "error_rate>0.5/1s"), minCalls)
		l.Add(900*time.Millisecond, sample(metrics.Counts{metrics.Timeout: 3}))
		if _, tripped := l.Check(time.Second); tripped != want {
			t.Errorf("at least %d calls: tripped %v with 3", minCalls, tripped)
		}
	}
}

// TestLiveAgainstHistory holds Live against a plain list of all samples.
func TestLiveAgainstHistory(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		checkHistory(t, r)
	}
}

func checkHistory(t *testing.T, r *rand.Rand) {
	window := time.Duration(1000+r.Int64N(30_000)) * time.Millisecond
	var all []Condition
	for _, g := range gauges {
		all = append(all, Condition{metric: g.name, orEqual: r.IntN(2) == 0, window: window, limit: 1 + r.Int64N(one)})
	}
	l, history := NewLive(all, 1), []added(nil)
	width := l.rings[0].width
	for now := time.Duration(0); now < 3*window; now += time.Duration(r.Int64N(int64(window / 10))) {
		late := time.Duration(r.Int64N(int64(2*time.Second))) * time.Duration(r.IntN(2))
		a := added{max(0, now-late), drawSample(r)}
		l.Add(a.at, a.Sample)
		history = append(history, a)
		for _, rule := range l.rules {
			rule.ring.looked = false
			value, n := rule.read(rule.ring.last(now), !rule.orEqual)
			wantValue, wantN := fromHistory(history, rule, now, width)
			if value != wantValue || n != wantN {
				t.Fatalf("%v at %v: %d of %d, want %d of %d", rule.Condition, now, value, n, wantValue, wantN)
			}
		}
	}
}

func drawSample(r *rand.Rand) Sample {
	s := Sample{Outcomes: metrics.Counts{}}
	for _, o := range metrics.Outcomes() {
		s.Outcomes[o] = r.Int64N(30)
	}
	for range s.Outcomes[metrics.OK] {
		s.Latency.Record(r.Int64N(2_000_000))
	}
	return s
}

func fromHistory(history []added, r rule, now, width time.Duration) (value, n int64) {
	sum := seen{outcomes: metrics.Counts{}}
	for _, a := range history {
		if a.at/width >= max(0, now-r.window)/width {
			sum.merge(a.Outcomes, &a.Latency)
		}
	}
	return r.read(&sum, !r.orEqual)
}

// TestRateIsExact: a share is compared with its limit as whole numbers.
func TestRateIsExact(t *testing.T) {
	for n := int64(1); n <= 200; n++ {
		for k := range n + 1 {
			near := k * one / n
			for limit := max(0, near-2); limit <= near+2; limit++ {
				above, atLeast := Condition{limit: limit}, Condition{limit: limit, orEqual: true}
				if got, want := above.exceeded(part(k, n, true)), k*one > limit*n; got != want {
					t.Fatalf("%d of %d above %d: %v", k, n, limit, got)
				}
				if got, want := atLeast.exceeded(part(k, n, false)), k*one >= limit*n; got != want {
					t.Fatalf("%d of %d at least %d: %v", k, n, limit, got)
				}
			}
		}
	}
	for _, k := range []int64{-5, 0, 3, 1 << 62} {
		for _, n := range []int64{-3, 0, 3, 1<<63 - 1} {
			if got := part(k, n, true); got < 0 || got > one {
				t.Errorf("%d of %d is %d", k, n, got)
			}
		}
	}
}
