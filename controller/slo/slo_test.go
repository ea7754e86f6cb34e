package slo

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/controller/result"
	"ordeal/metrics"
)

func TestParse(t *testing.T) {
	got, err := Parse("p95<500ms, error_rate <= 1%,ttft_p50<1s,p99.9<2s,gap_p95<40ms,dropped_rate<0.005")
	if err != nil {
		t.Fatal(err)
	}
	want := []Objective{{"p95", 0.95, 0.5}, {"error_rate", 0, 0.01}, {"ttft_p50", 0.5, 1}, {"p99.9", 0.99900000000000011, 2}, {"gap_p95", 0.95, 0.04}, {"dropped_rate", 0, 0.005}}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, o := range got {
		again, err := Parse(o.String())
		if err != nil || len(again) != 1 || !cmp.Equal(again[0], o, near) {
			t.Errorf("%v read again: %v, %v", o, again, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "has no <"},
		{"p95>500ms", "has no <"},
		{"p0<1s", `percentile "0": want 1 to 99.999`},
		{"p100<1s", "want 1 to 99.999"},
		{"latency<1s", `unknown metric "latency"`},
		{"price<1s", `unknown metric "price"`},
		{"p95<fast", `limit "fast" is no duration`},
		{"p95<-1s", "is no duration from 1µs to 1h"},
		{"error_rate<2", `limit "2" is no share`},
		{"error_rate<NaN", "is no share"},
		{"error_rate<101%", "is no share"},
		{"p95<1s,p95<2s", "p95 has a limit already"},
		{"p95<1s,,error_rate<1", "want for example p95<500ms,error_rate<1%"},
	} {
		_, err := Parse(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Parse(%q): %v, want %q in it", tt.text, err, tt.want)
		}
	}
}

// tallyOf is made of ok calls that took 1 to ok ms, and of failures.
func tallyOf(ok, failed int) *metrics.Tally {
	t := metrics.NewTally()
	for i := range ok {
		t.Add(&metrics.Exchange{Outcome: metrics.OK, Latency: time.Duration(i+1) * time.Millisecond}, 0)
	}
	for range failed {
		t.Add(&metrics.Exchange{Outcome: metrics.ServerError, Latency: time.Millisecond}, 0)
	}
	return t
}

// TestJudge: a check passes or fails where the interval excludes the other, and is
// open where it does not.
func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		slo        string
		ok, failed int
		want       result.Status
		observed   float64
		met, known bool
	}{
		{"p50<900ms", 1000, 0, result.Pass, 500, true, true},
		{"p50<510ms", 1000, 0, result.Unproven, 500, true, true},
		{"p50<490ms", 1000, 0, result.Undecided, 500, false, true},
		{"p50<100ms", 1000, 0, result.Fail, 500, false, true},
		{"p99<1s", 50, 0, result.Unproven, 50, true, true}, // no upper bound on p99 of 50 calls
		{"error_rate<50%", 900, 100, result.Pass, 0.1, true, true},
		{"error_rate<1%", 100, 0, result.Unproven, 0, true, true},
		{"error_rate<1%", 900, 100, result.Fail, 0.1, false, true},
		{"error_rate<9.9%", 900, 100, result.Undecided, 0.1, false, true},
		{"ttft_p50<1s", 100, 0, result.NA, 0, false, false},
		{"dropped_rate<1%", 100, 0, result.NA, 0, false, false},
	} {
		objectives, err := Parse(tt.slo)
		if err != nil {
			t.Fatal(err)
		}
		checks := Judge(objectives, tallyOf(tt.ok, tt.failed))
		c := checks[0]
		if c.Status != tt.want || c.Status != result.NA && *c.Observed != tt.observed {
			t.Errorf("%s of %d ok and %d failed: %+v, want %s at %v", tt.slo, tt.ok, tt.failed, c, tt.want, tt.observed)
		}
		if met, known := Met(checks); met != tt.met || known != tt.known {
			t.Errorf("%s: met %v, known %v; want %v, %v", tt.slo, met, known, tt.met, tt.known)
		}
		if c.Reason == "" {
			t.Errorf("%s: no reason", tt.slo)
		}
	}
}

// TestDroppedRate counts arrivals, not calls.
func TestDroppedRate(t *testing.T) {
	objectives, _ := Parse("dropped_rate<1%")
	tally := tallyOf(50, 0)
	tally.Window.Scheduled, tally.Window.Dropped = 100, 50
	if c := Judge(objectives, tally)[0]; c.Status != result.Fail || *c.Observed != 0.5 || c.N != 100 {
		t.Errorf("%+v, want half of 100 arrivals", c)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("p95<500ms,error_rate<1%")
	f.Add("gap_p50<=1h,dropped_rate<0.1,p99.999<1us")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse(text)
		if err != nil {
			return
		}
		tally := tallyOf(20, 1)
		for i, c := range Judge(all, tally) {
			if c.Status != result.NA && (c.Observed == nil || math.IsNaN(*c.Observed) || c.N == 0) {
				t.Errorf("%q: check %d %+v without a number", text, i, c)
			}
			if o := all[i]; o.Limit < 0 || math.IsNaN(o.Limit) || o.Quantile < 0 || o.Quantile >= 1 {
				t.Errorf("%q: objective %+v", text, o)
			}
		}
	})
}
