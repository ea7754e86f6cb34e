package report

import (
	"math"
	"strings"
	"testing"

	"ordeal/metrics"
)

func TestQuantity(t *testing.T) {
	for _, tt := range []struct {
		v    float64
		unit string
		want string
	}{
		{7.98832, "s", "7.99s"}, {0, "s", "0s"}, {0.1, "s", "0.10s"}, {0.0999, "s", "0.10s"}, {0.099, "s", "99.0ms"}, {0.0121, "s", "12.1ms"},
		{0.0042, "s", "4.20ms"}, {0.001, "s", "1.00ms"}, {0.000452, "s", "452µs"}, {0.00008, "s", "80µs"}, {0.0000042, "s", "4.2µs"}, {4e-7, "s", "0.4µs"},
		{-0.25, "s", "-0.25s"}, {12345.678, "s", "12,345.68s"}, {1e13, "s", "1e+13s"},
		{7988.32, "ms", "7.99s"}, {268, "us", "268µs"},
		{0, "rate", "0.0%"}, {0.075, "rate", "7.5%"}, {1, "rate", "100.0%"}, {0.0004, "rate", "0.04%"}, {0.99999, "rate", "99.999%"}, {0.9996, "rate", "99.96%"},
		{1e-9, "rate", "<0.00001%"}, {1 - 1e-12, "rate", ">99.99999%"}, {1.5, "rate", "150.0%"},
		{0.1, "$", "$0.1000"}, {0.000645, "$", "$0.000645"}, {0.00000602, "$", "$0.00000602"}, {0.0005, "$", "$0.0005"}, {0, "$", "$0.0000"}, {1234.5, "$", "$1234.5000"},
		{1.3, "x", "1.30x"}, {9, "count", "9"}, {118402, "count", "118,402"}, {2.5, "count", "2.5"}, {0.034, "/s", "0.034/s"}, {1966.7, "/s", "1966.7/s"},
		{647.075, "tokens", "647.1 tokens"}, {3, "<b>|odd", "3 bodd"}, {math.NaN(), "s", "-"}, {math.Inf(1), "rate", "-"},
	} {
		if got := quantity(tt.v, tt.unit); got != tt.want {
			t.Errorf("quantity(%v, %q) = %q, want %q", tt.v, tt.unit, got, tt.want)
		}
	}
}

// Points are rounded down, so that nothing looks reached that is not.
func TestPoints(t *testing.T) {
	for v, want := range map[float64]string{14.02: "14", 7.5: "7.5", 19.97: "19.9", 20: "20", 13.9999999999: "14", 74.96: "74.9", 0: "0", 100: "100"} {
		if got := points(v); got != want {
			t.Errorf("points(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestInterval(t *testing.T) {
	if got := interval(&metrics.Interval{Lo: 6801.2, Hi: 8476.6}, "ms"); got != "6.80s..8.48s" {
		t.Errorf("got %q", got)
	}
	if got := interval(nil, "ms"); got != "-" {
		t.Errorf("got %q for a missing interval", got)
	}
}

// No real value may read as zero, and no share short of one as all.
func FuzzQuantity(f *testing.F) {
	f.Add(0.0)
	f.Add(1e-30)
	f.Add(0.0999999)
	f.Add(math.MaxFloat64)
	f.Fuzz(func(t *testing.T, v float64) {
		for _, unit := range []string{"s", "ms", "us", "rate", "$", "x", "/s", "count", "tokens"} {
			got := quantity(v, unit)
			if len(got) > 32 {
				t.Fatalf("quantity(%g, %s) = %q is %d long", v, unit, got, len(got))
			}
			if v > 0 && !math.IsInf(v, 0) && unit != "x" && strings.Trim(got, "0.,s%$/µm token") == "" {
				t.Fatalf("quantity(%g, %s) = %q reads as zero", v, unit, got)
			}
			if unit == "rate" && v < 1 && strings.HasPrefix(got, "100") {
				t.Fatalf("rate(%g) = %q", v, got)
			}
		}
	})
}
