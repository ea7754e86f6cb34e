package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// TestOneAgentHasNoFleetBlock: a run of one agent that was not lost prints what it
// printed before there were fleets, in every format but the JSON.
func TestOneAgentHasNoFleetBlock(t *testing.T) {
	for name, doc := range documents() {
		if doc.Fleet != nil {
			continue
		}
		for format, render := range formats {
			if format == "json" {
				continue
			}
			want := rendered(t, func(w io.Writer) error { return render(w, doc) })
			alone := *doc
			alone.Fleet = &result.Fleet{Calls: doc.Run.Calls, Agents: []result.FleetAgent{{ID: "local-1", Version: "0.1.0", Units: 3, Operations: 40}},
				Gangs: []result.Gang{gang("concurrency-4", 4, 4, 0, 0)}, Outliers: []result.Outlier{}}
			if diff := cmp.Diff(string(want), string(rendered(t, func(w io.Writer) error { return render(w, &alone) }))); diff != "" {
				t.Errorf("%s as %s (-without +with a fleet of one):\n%s", name, format, diff)
			}
			alone.Fleet.Agents[0].Lost = true
			if format == "verdict" {
				continue
			}
			if got := rendered(t, func(w io.Writer) error { return render(w, &alone) }); bytes.Equal(want, got) {
				t.Errorf("%s as %s hides that its agent was lost", name, format)
			}
		}
	}
}

// TestDocumentBeforeFleets: a stored document without the section reads and renders.
func TestDocumentBeforeFleets(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "failing.json.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte(`"outliers"`)) {
		t.Fatal("this document has a fleet")
	}
	doc, err := ParseJSON(bytes.NewReader(data))
	if err != nil || doc.Fleet != nil {
		t.Fatalf("fleet %v, %v", doc.Fleet, err)
	}
	page := string(rendered(t, func(w io.Writer) error { return Markdown(w, doc) }))
	if strings.Contains(page, "## Fleet") || !strings.Contains(page, "| `agent-eu-2` |") {
		t.Error("the agents of an older document are told in another way")
	}
}

func TestFleetLines(t *testing.T) {
	two := []result.FleetAgent{{ID: "a"}, {ID: "b"}}
	outlier := func(what, metric string, own, rest metrics.Measured, p float64) result.Outlier {
		return result.Outlier{Agent: "b", What: what, Evidence: result.OutlierEvidence{Metric: metric, Own: own, Rest: rest, P: p, Level: 0.01}}
	}
	slow, quick := within(0.4, "s", 60, 0.39, 0.41), within(0.1, "s", 900, 0.099, 0.101)
	for _, row := range []struct {
		name  string
		fleet result.Fleet
		want  string
	}{
		{"Degraded", result.Fleet{Agents: two, Gangs: []result.Gang{{Stage: "concurrency-16", Of: "callers", Planned: 16, Achieved: 12, Lost: []string{"eu-2"}, Degraded: true}}},
			"concurrency 16: 12 of 16 callers, agent eu-2 lost; left out of the verdict"},
		{"Repeated", result.Fleet{Agents: two, Gangs: []result.Gang{{Stage: "concurrency-16", Of: "callers", Planned: 16, Achieved: 16, Attempts: 2, Lost: []string{"eu-2"}}}},
			"concurrency 16: repeated without agent eu-2: 16 of 16 callers"},
		{"Arrivals", result.Fleet{Agents: two, Gangs: []result.Gang{{Stage: "latency", Of: result.OfArrivals, Planned: 1000, Achieved: 750, Lost: []string{"a", "b"}, Degraded: true}}},
			"latency: 75.0% of the arrivals, planned 100.0%, agents a, b lost; left out of the verdict"},
		{"DegradedBeforeRepeated", result.Fleet{Agents: two, Gangs: []result.Gang{gang("concurrency-2", 2, 2, 1, 1, "x"), gang("concurrency-4", 4, 3, 1, 1, "x", "y")}},
			"concurrency 4: 3 of 4 callers, agents x, y lost; left out of the verdict\nconcurrency 2: repeated"},
		{"WorstSkew", result.Fleet{Agents: two, Gangs: []result.Gang{gang("concurrency-2", 2, 2, 900, 100), gang("concurrency-4", 4, 4, 800, 300)}},
			"Start skew: at most 800µs ± 300µs (concurrency 4); the latest start missed by 371µs"},
		{"NoSkewKnown", result.Fleet{Agents: two, Gangs: []result.Gang{{Stage: "concurrency-2", Of: "callers", Planned: 2, Achieved: 2}}}, "Agents: 2; 0 units, 0 operations\nCounted"},
		{"Withheld", result.Fleet{Agents: two, Withheld: []result.WithheldAgent{{Agent: "b", Stage: "latency", Reason: "woken late", Requests: 1}}},
			"Withheld: b was the limit itself in latency (woken late): the times of 1 request are left out"},
		{"Counted", result.Fleet{Agents: two, Calls: 1, Reissued: 2, Ignored: 3}, "Counted: 1 call, 2 operations reissued, 3 results ignored"},
		{"NotCompared", result.Fleet{Agents: two, Compared: 1}, "Outliers: not looked for: too few requests of each agent"},
		{"NobodyStandsOut", result.Fleet{Agents: two, Compared: 2}, "Outliers: none of the 2 agents compared"},
		{"Slower", result.Fleet{Agents: two, Compared: 2, Outliers: []result.Outlier{outlier(result.Slower, "p50_s", slow, quick, 1e-16)}},
			"Outlier: b is slower: p50 0.40s (0.39s..0.41s, n 60), the rest 0.10s (99.0ms..0.10s, n 900), p < 1e-15"},
		{"QuickerTail", result.Fleet{Agents: two, Compared: 2, Outliers: []result.Outlier{outlier(result.FasterTail, "p95_s", quick, slow, 0.00031)}},
			"Outlier: b has a quicker tail: p95 0.10s (99.0ms..0.10s, n 900), the rest 0.40s (0.39s..0.41s, n 60), p 0.00031"},
		{"UnknownKind", result.Fleet{Agents: two, Compared: 2, Outliers: []result.Outlier{outlier("odd", "error_rate", metrics.Measured{}, metrics.Measured{}, 0)}},
			"Outlier: b stands out: error rate -, the rest -"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := read(&result.Document{Fleet: &row.fleet})
			if !r.fleetMatters() {
				t.Fatal("two agents are no fleet")
			}
			text := ""
			for _, l := range r.fleetLines() {
				text += l.lead + ": " + l.text + "\n"
			}
			if !strings.Contains(text, row.want) {
				t.Errorf("no %q in\n%s", row.want, text)
			}
		})
	}
}

// TestFleetBlockIsBounded: a thousand of everything stays a block.
func TestFleetBlockIsBounded(t *testing.T) {
	doc := zoned()
	f := doc.Fleet
	for i := range 1000 {
		id := fmt.Sprint("agent-", i)
		f.Agents = append(f.Agents, result.FleetAgent{ID: id, Lost: true})
		f.Gangs = append(f.Gangs, gang("concurrency-1"+fmt.Sprint(i), 9, 8, 1, 1, id, "x"))
		f.Withheld = append(f.Withheld, result.WithheldAgent{Agent: id, Stage: "latency"})
		f.Outliers = append(f.Outliers, result.Outlier{Agent: id, What: result.Faster})
		f.Breakdown.Groups = append(f.Breakdown.Groups, result.Group{Value: id})
		f.Breakdown.Stages = append(f.Breakdown.Stages, id)
	}
	card := string(rendered(t, func(w io.Writer) error { return Scorecard(w, doc, ScorecardOptions{}) }))
	assertSheet(t, card, MaxWidth)
	_, block, _ := strings.Cut(card, "\nFleet\n")
	block, _, _ = strings.Cut(block, "actual  target")
	if n := strings.Count(block, "\n"); n > 80 {
		t.Errorf("the block has %d lines", n)
	}
	for _, want := range []string{"996 more stages lost an agent", "995 more agents withheld", "996 more outliers", "992 more values", "999 more;"} {
		if !strings.Contains(block, want) {
			t.Errorf("no %q in\n%s", want, block)
		}
	}
	if guide := rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, nil, now) }); len(guide) > 24_000 {
		t.Errorf("guide of %d bytes", len(guide))
	}
}
