package report

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordeal/controller/result"
	"ordeal/metrics"
)

func TestMovement(t *testing.T) {
	rateMetric := trackedMetric{key: "r", label: "recovery rate", unit: "rate", higherBetter: true}
	slow := trackedMetric{key: "r", label: "p95 latency", unit: "s"}
	crashes := trackedMetric{key: "r", label: "crashes", unit: "count", exact: true}
	at := func(v float64, n int64, iv ...float64) *state {
		s := &state{Metrics: map[string]*float64{"r": &v}, N: map[string]int64{"r": n}, Intervals: map[string]span{}}
		if len(iv) == 2 {
			s.Intervals["r"] = span{iv[0], iv[1]}
		}
		return s
	}
	none := &state{}
	for _, tt := range []struct {
		name          string
		t             trackedMetric
		before, after *state
		kind          moveKind
		text          string
	}{
		{"Apart", rateMetric, at(0.3, 40, 0.2, 0.4), at(0.9, 40, 0.8, 0.95), moved, "Recovery rate **improved**: 30.0% -> 90.0% (the 95% intervals do not overlap)."},
		{"ApartDown", rateMetric, at(0.9, 40, 0.8, 0.95), at(0.3, 40, 0.2, 0.4), moved, "Recovery rate **regressed**: 90.0% -> 30.0% (the 95% intervals do not overlap)."},
		{"LowerIsBetter", slow, at(7, 40, 6, 8), at(2, 40, 1, 3), moved, "p95 latency **improved**: 7.00s -> 2.00s (the 95% intervals do not overlap)."},
		{"Overlap", slow, at(7, 40, 5, 8), at(4, 40, 3, 6), withinNoise, "p95 latency 7.00s -> 4.00s"},
		{"Touching", slow, at(7, 40, 6, 8), at(5, 40, 4, 6), withinNoise, "p95 latency 7.00s -> 5.00s"},
		{"OneIntervalOutside", slow, at(9, 40), at(5, 40, 4, 6), moved, "p95 latency **improved**: 9.00s -> 5.00s (outside the one 95% interval there is)."},
		{"OneIntervalInside", slow, at(5.5, 40), at(5, 40, 4, 6), withinNoise, "p95 latency 5.50s -> 5.00s"},
		{"NoInterval", slow, at(5.5, 0), at(5, 0), moved, "p95 latency: 5.50s -> 5.00s, no interval in either run, so this may be noise."},
		{"Count", crashes, at(2, 15), at(0, 40), moved, "Crashes **improved**: 2 of 15 -> 0 of 40 (counted)."},
		{"Same", crashes, at(2, 15), at(2, 15), same, "crashes 2"},
		{"Withdrawn", slow, at(5, 40), none, moved, "p95 latency: 5.00s before, not measured now."},
		{"New", slow, none, at(5, 40), moved, "p95 latency: not measured before, now 5.00s."},
		{"Neither", slow, none, none, unknown, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := move{tt.kind, tt.text}
			if diff := cmp.Diff(want, movement(tt.t, tt.before, tt.after), cmp.AllowUnexported(move{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMismatches(t *testing.T) {
	base := func() *state {
		return &state{Target: "a", Tool: "t", Args: json.RawMessage(`{"q": 1, "r": 2}`), Comparability: "h1", Fields: map[string]string{"seed": "1", "policy": "p"}}
	}
	for _, tt := range []struct {
		name   string
		change func(*state)
		want   []string
	}{
		{"Same", func(s *state) { s.Args = json.RawMessage(`{"r":2,"q":1}`) }, nil},
		{"Tool", func(s *state) { s.Tool = "u" }, []string{"another tool was called: `t` then, `u` now."}},
		{"Args", func(s *state) { s.Args = json.RawMessage(`{"q":2}`) }, []string{"the tool was called with other arguments."}},
		{"Hash", func(s *state) { s.Comparability, s.Fields = "h2", map[string]string{"seed": "2", "policy": "p"} }, []string{"the comparability hash differs in `seed`."}},
		{"NoHash", func(s *state) { s.Comparability = "" }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := base()
			tt.change(now)
			if diff := cmp.Diff(tt.want, mismatches(base(), now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A guide that RateMyAgent wrote is read, named as such and compared.
func TestSinceReadsRateMyAgent(t *testing.T) {
	previous, err := os.ReadFile(filepath.Join("testdata", "ratemyagent.AGENTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := degraded()
	doc.Target.Name = "failing-mock"
	guide := string(rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, previous, now) }))
	for _, want := range []string{
		"written by RateMyAgent, another instrument",
		"Score: 10.4 -> 80.7",
		"Crashes on malformed input **improved**: 2 -> 0 of 15 (counted)",
		"Error rate **improved**: 32.5% -> 0.0% (outside the one 95% interval there is)",
		"Recovery rate **improved**: 19.0% -> 100.0%",
	} {
		if !strings.Contains(guide, want) {
			t.Errorf("no %q in\n%s", want, guide)
		}
	}
}

// The guide of another target says nothing about this one.
func TestSinceOfAnotherTarget(t *testing.T) {
	previous := rendered(t, func(w io.Writer) error { return AgentsMD(w, failing(), nil, now) })
	doc := degraded()
	doc.Target.Name = "b`"
	_, since, _ := strings.Cut(string(rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, previous, now) })), "## Since the last scan\n\n")
	since, _, _ = strings.Cut(since, "\n\n")
	if want := "- The previous guide was for `notes-server`, this one is for `` b` ``: not compared."; since != want {
		t.Errorf("got %q, want %q", since, want)
	}
}

func TestReadState(t *testing.T) {
	score := 12.5
	for _, tt := range []struct {
		name, guide string
		found       bool
		want        *state
	}{
		{"None", "# a guide\n", false, nil},
		{"Own", "x\n<!-- ordeal-state\n{\"version\":1,\"target\":\"t\",\"score\":12.5}\n-->\n", true, &state{Version: 1, Target: "t", Score: &score}},
		{"LastWins", "<!-- ordeal-state {\"version\":1,\"target\":\"a\"} --> <!-- ordeal-state {\"version\":1,\"target\":\"b\"} -->", true, &state{Version: 1, Target: "b"}},
		{"Foreign", "<!-- ratemyagent-state\n{\"version\":1,\"target\":\"t\"}\n-->", true, &state{Version: 1, Target: "t", foreign: true}},
		{"OtherVersion", "<!-- ordeal-state {\"version\":2} -->", true, nil},
		{"NotJSON", "<!-- ordeal-state {oops -->", true, nil},
		{"Open", "<!-- ordeal-state {\"version\":1}", true, nil},
		{"TooLong", "<!-- ordeal-state " + strings.Repeat(" ", maxState) + "{\"version\":1} -->", true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, found := readState([]byte(tt.guide))
			if found != tt.found {
				t.Errorf("found = %v, want %v", found, tt.found)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(state{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadableStateIsSaid(t *testing.T) {
	guide := string(rendered(t, func(w io.Writer) error { return AgentsMD(w, degraded(), []byte("<!-- ordeal-state {oops -->"), now) }))
	if !strings.Contains(guide, "could not be read, so nothing is compared") {
		t.Error("a broken state block passes in silence")
	}
}

// The same run twice has moved nowhere.
func TestSinceItself(t *testing.T) {
	for name, doc := range documents() {
		first := rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, nil, now) })
		second := string(rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, first, now) }))
		_, since, found := strings.Cut(second, "## Since the last scan")
		if !found {
			t.Fatalf("%s: no such section", name)
		}
		for _, word := range []string{"improved", "regressed", "Not like for like", "noise", "not measured"} {
			if strings.Contains(since, word) {
				t.Errorf("%s: %q in %s", name, word, since)
			}
		}
	}
}

// The interval of a check serves where the metric has none, in its unit.
func TestIntervalOfCheck(t *testing.T) {
	doc := degraded()
	doc.Probes[0].Metrics["p95_s"] = metrics.Measured{Value: 7.98832, Unit: "s", N: 40}
	doc.Checks[0] = check("p95_latency_ms", "latency.p95_s", "ms", 5000, ptr(7988.32), 40, iv(6801.2, 8476.61), result.Fail, "")
	if diff := cmp.Diff(span{6.8012, 8.47661}, stateOf(read(doc), now).Intervals["p95_s"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Any text is read without panic, and what a state block writes is what it
// reads back.
func FuzzReadState(f *testing.F) {
	f.Add([]byte("<!-- ordeal-state\n{\"version\":1,\"target\":\"a\\\\\\\"{[,\",\"metrics\":{\"p95_s\":1}}\n-->"))
	f.Add([]byte("<!-- ratemyagent-state\n{\"version\":1,\"metrics\":{\"crashes\":null}}\n-->"))
	f.Add([]byte("<!-- ordeal-state -->"))
	f.Fuzz(func(t *testing.T, guide []byte) {
		s, found := readState(guide)
		if s == nil {
			return
		}
		if !found {
			t.Fatal("a state that was not found")
		}
		rendered(t, func(w io.Writer) error { return AgentsMD(w, llm(), guide, now) })
		block, err := s.block()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count([]byte(block), []byte("-->")) != 1 {
			t.Fatalf("a comment that ends early: %s", block)
		}
		again, _ := readState([]byte(block))
		if again == nil {
			t.Fatalf("does not read back: %s", block)
		}
		twice, err := again.block()
		if err != nil || twice != block {
			t.Fatalf("not stable: %v\n%s\n%s", err, block, twice)
		}
	})
}
