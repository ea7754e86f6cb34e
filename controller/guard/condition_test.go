package guard

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ordeal/metrics"
)

func TestParseCondition(t *testing.T) {
	rows := []struct {
		text      string
		want      Condition
		canonical string
	}{
		{"error_rate>0.5/10s", Condition{"error_rate", false, 500_000_000, 10 * time.Second}, "error_rate>0.5/10s"},
		{"error_rate>50%/10s", Condition{"error_rate", false, 500_000_000, 10 * time.Second}, "error_rate>0.5/10s"},
		{" error_rate > 50 % / 10s ", Condition{"error_rate", false, 500_000_000, 10 * time.Second}, "error_rate>0.5/10s"},
		{"error_rate\t>=\t1/1s", Condition{"error_rate", true, one, time.Second}, "error_rate>=1/1s"},
		{"error_rate>=100%/60s", Condition{"error_rate", true, one, time.Minute}, "error_rate>=1/1m"},
		{"error_rate>0/1h", Condition{"error_rate", false, 0, time.Hour}, "error_rate>0/1h"},
		{"error_rate>0.1%/3600s", Condition{"error_rate", false, 1_000_000, time.Hour}, "error_rate>0.001/1h"},
		{"error_rate>0.0000001%/10s", Condition{"error_rate", false, 1, 10 * time.Second}, "error_rate>0.000000001/10s"},
		{"timeout_rate>0.10/10s", Condition{"timeout_rate", false, 100_000_000, 10 * time.Second}, "timeout_rate>0.1/10s"},
		{"rate_limited_rate>0.2/5s", Condition{"rate_limited_rate", false, 200_000_000, 5 * time.Second}, "rate_limited_rate>0.2/5s"},
		{"server_error_rate>0.2/90s", Condition{"server_error_rate", false, 200_000_000, 90 * time.Second}, "server_error_rate>0.2/1m30s"},
		{"connection_rate>0.2/1.5s", Condition{"connection_rate", false, 200_000_000, 1500 * time.Millisecond}, "connection_rate>0.2/1.5s"},
		{"p95>500ms/30s", Condition{"p95", false, 500_000, 30 * time.Second}, "p95>500ms/30s"},
		{"p99>=2s/1m", Condition{"p99", true, 2_000_000, time.Minute}, "p99>=2s/1m"},
		{"p50>1us/1m", Condition{"p50", false, 1, time.Minute}, "p50>1µs/1m"},
		{"max>=1h/1h", Condition{"max", true, metrics.MaxValue, time.Hour}, "max>=1h/1h"},
		{"p999>1m0.5s/1h", Condition{"p999", false, 60_500_000, time.Hour}, "p999>1m0.5s/1h"},
		{"p90>10m/20m", Condition{"p90", false, 600_000_000, 20 * time.Minute}, "p90>10m/20m"},
	}
	for _, r := range rows {
		got, err := ParseCondition(r.text)
		if err != nil || got != r.want {
			t.Errorf("ParseCondition(%q) = %+v, %v; want %+v", r.text, got, err, r.want)
			continue
		}
		if got.String() != r.canonical || got.Window() != r.want.window {
			t.Errorf("%q is written %q over %v, want %q", r.text, got, got.Window(), r.canonical)
		}
	}
}

func TestParseConditionRefuses(t *testing.T) {
	rows := map[string]string{
		"":                             "has no > or >=",
		"error_rate":                   "has no > or >=",
		"error_rate<0.5/10s":           "has no > or >=",
		"error_rate>0.5":               "has no /WINDOW",
		"errors>0.5/10s":               "unknown metric",
		"Error_rate>0.5/10s":           "unknown metric",
		"ok_rate>0.5/10s":              "unknown metric",
		"cancelled_rate>0.5/10s":       "unknown metric",
		"harness_error_rate>0.5/10s":   "unknown metric",
		"p96>1s/10s":                   "unknown metric",
		">0.5/10s":                     "unknown metric",
		"error_rate>/10s":              "neither a share",
		"error_rate>.5/10s":            "neither a share",
		"error_rate>-0.5/10s":          "neither a share",
		"error_rate>1e-3/10s":          "neither a share",
		"error_rate>NaN/10s":           "neither a share",
		"error_rate>%/10s":             "neither a share",
		"error_rate>50%%/10s":          "neither a share",
		"error_rate>500ms/10s":         "neither a share",
		"error_rate> = 0.5/10s":        "neither a share",
		"error_rate>50/10s":            "above 1",
		"error_rate>1.1/10s":           "above 1",
		"error_rate>101%/10s":          "above 1",
		"error_rate>99999999999999/9s": "above 1",
		"error_rate>0.1234567891/10s":  "10 decimals, at most 9",
		"error_rate>0.12345678%/10s":   "8 decimals, at most 7",
		"error_rate>1/10s":             "would never stop",
		"error_rate>100%/10s":          "would never stop",
		"error_rate>=0/10s":            "would always stop",
		"p95>500/30s":                  "is no duration",
		"p95>50%/30s":                  "is no duration",
		"p95>0/30s":                    "not between 1us and 1h",
		"p95>=0s/30s":                  "not between 1us and 1h",
		"p95>-1s/30s":                  "not between 1us and 1h",
		"p95>61m/30s":                  "not between 1us and 1h",
		"p95>1h/30s":                   "would never stop",
		"p95>1500ns/30s":               "whole microseconds",
		"error_rate>0.5/":              "is no duration",
		"error_rate>0.5/10":            "is no duration",
		"error_rate>0.5/10s/10s":       "is no duration",
		"error_rate>0.5/999ms":         "not between 1s and 1h",
		"error_rate>0.5/61m":           "not between 1s and 1h",
		"error_rate>0.5/-10s":          "not between 1s and 1h",
		"error_rate\n>0.5/10s":         "unknown metric",
	}
	for text, reason := range rows {
		got, err := ParseCondition(text)
		if err == nil || got != (Condition{}) {
			t.Errorf("ParseCondition(%q) = %v, %v; want an error about %q", text, got, err, reason)
			continue
		}
		checkRefusal(t, err)
		if !strings.Contains(err.Error(), reason) {
			t.Errorf("ParseCondition(%q): %v; want an error about %q", text, err, reason)
		}
	}
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	if text := err.Error(); strings.ContainsAny(text, "\n\r") || !strings.Contains(text, "for example") || len(text) > 2000 {
		t.Errorf("error is not one line with an example: %q", text)
	}
}

// TestExamplesParse keeps the examples of error messages and of the package
// comment honest.
func TestExamplesParse(t *testing.T) {
	for text := range strings.SplitSeq(examples, " or ") {
		if _, err := ParseCondition(text); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"error_rate > 0.5 / 10s", "rate_limited_rate >= 20% / 5s", "p95 > 500ms / 30s"} {
		if _, err := ParseCondition(text); err != nil {
			t.Error(err)
		}
	}
}

func TestGaugeNames(t *testing.T) {
	got := strings.Join(gaugeNames(), " ")
	want := "error_rate tool_error_rate protocol_error_rate invalid_response_rate rate_limited_rate auth_required_rate " +
		"server_error_rate timeout_rate session_lost_rate connection_rate p50 p90 p95 p99 p999 max"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestConditionInJSON(t *testing.T) {
	want := []Condition{condition(t, "p95>500ms/30s"), {}}
	raw, err := json.Marshal(want)
	if err != nil || string(raw) != `["p95\u003e500ms/30s",""]` {
		t.Fatalf("%s, %v", raw, err)
	}
	var got []Condition
	if err := json.Unmarshal(raw, &got); err != nil || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("came back as %v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`["p95"]`), &got); err == nil || got[0] != (Condition{}) {
		t.Errorf("accepted %v", got)
	}
}

// FuzzParseCondition: what is accepted is within bounds and has one text, which
// parses to the same; what is refused gets one line with an example.
func FuzzParseCondition(f *testing.F) {
	for _, text := range []string{"error_rate>0.5/10s", "error_rate > 50% / 10s", "p95>500ms/30s", "p99>=2s/1m", "max>=1h/1h", "p50>1.5us/1h0m1s",
		"timeout_rate>0.000000001/1.000000001s", "error_rate>1/10s", "p95>1h/1s", "a>b/c", ">=/", "p95>1µs/1h", "p95>+1s/+2s", "error_rate>0.1\n/1s", "\xff>/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCondition(text)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		again, err := ParseCondition(c.String())
		if err != nil || again != c {
			t.Fatalf("%q is written %q, which is read as %q, %v", text, c, again, err)
		}
		if c.window < MinWindow || c.window > MaxWindow || c.limit < 0 || c.limit > metrics.MaxValue || c.exceeded(0) {
			t.Fatalf("accepted %+v", c)
		}
	})
}

func condition(t testing.TB, text string) Condition {
	t.Helper()
	c, err := ParseCondition(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
