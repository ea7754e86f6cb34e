package schedule

import (
	"math"
	"strings"
	"testing"
)

func TestParsePPB(t *testing.T) {
	for text, want := range map[string]PPB{
		"0": 0, "1": One, "0.2": 200_000_000, "0.30": 300_000_000, "1.0": One, "0.000000001": 1,
		"0.999999999": One - 1, "00.5": 500_000_000, "1.000000000": One,
	} {
		got, err := ParsePPB(text)
		if err != nil || got != want {
			t.Errorf("ParsePPB(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for text, reason := range map[string]string{
		"": "plain decimal", ".5": "plain decimal", "1.": "plain decimal", "-0.1": "plain decimal", "+0.1": "plain decimal",
		"1e-3": "plain decimal", "20%": "plain decimal", "0,2": "plain decimal", " 0.2": "plain decimal", "0.2.1": "plain decimal",
		"NaN": "plain decimal", "0x1": "plain decimal", "1.000000001": "above 1", "2": "above 1", "20": "above 1",
		"99999999999999999999999": "above 1", "0.0000000001": "10 decimals", "0.2000000000": "10 decimals",
	} {
		if got, err := ParsePPB(text); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("ParsePPB(%q) = %d, %v, want an error about %q", text, got, err, reason)
		}
	}
}

func TestPPBFromFloat(t *testing.T) {
	for f, want := range map[float64]PPB{0: 0, 1: One, 0.2: 200_000_000, 0.3: 300_000_000, 1e-9: 1, 0.95: 950_000_000} {
		if got, err := PPBFromFloat(f); err != nil || got != want {
			t.Errorf("PPBFromFloat(%v) = %d, %v, want %d", f, got, err, want)
		}
	}
	sum := 0.1
	sum += 0.2 // 0.30000000000000004: not a rate anybody wrote
	for _, f := range []float64{sum, -0.1, 1.1, 1.0 / 3, 1e-10, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
		if got, err := PPBFromFloat(f); err == nil {
			t.Errorf("PPBFromFloat(%v) = %d", f, got)
		}
	}
}

func TestEveryShortRateSurvivesTheFloat(t *testing.T) {
	for i := range 100_001 {
		want := PPB(i) * 10_000
		got, err := PPBFromFloat(float64(i) / 100_000)
		if err != nil || got != want {
			t.Fatalf("%d/100000 = %d, %v", i, got, err)
		}
	}
}

func FuzzParsePPB(f *testing.F) {
	for _, text := range []string{"0.2", "1", "", "1.000000001", "0.0000000001", "-1", "1e9", "０.2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rate, err := ParsePPB(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of %q has more than one line", text)
			}
			return
		}
		if rate > One {
			t.Errorf("ParsePPB(%q) = %d", text, rate)
		}
		if back, err := ParsePPB(rate.String()); err != nil || back != rate {
			t.Errorf("%q reads as %d, prints as %q, reads back as %d, %v", text, rate, rate.String(), back, err)
		}
		if viaFloat, err := PPBFromFloat(rate.Float()); err != nil || viaFloat != rate {
			t.Errorf("%q as a float reads as %d, %v", text, viaFloat, err)
		}
	})
}
