package report

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"ordeal/controller/result"
	"ordeal/testdata/peers"
)

var inf = math.Inf(1)

// logged is what a reader found of a log under one tag.
type logged struct {
	Lines int   `json:"lines"`
	Calls int64 `json:"calls"`
	P50   int64 `json:"p50"`
	P99   int64 `json:"p99"`
}

// pythonReader reads a log with the HdrHistogram of PyPI.
const pythonReader = `
import json, sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

sums, lines = {}, {}
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3600000000, 3))
while True:
    h = reader.get_next_interval_histogram()
    if h is None:
        break
    tag = h.get_tag() or ""
    lines[tag] = lines.get(tag, 0) + 1
    sums.setdefault(tag, HdrHistogram(1, 3600000000, 3)).add(h)
print(json.dumps({t: {"lines": lines[t], "calls": s.get_total_count(), "p50": s.get_value_at_percentile(50) if s.get_total_count() else 0,
                      "p99": s.get_value_at_percentile(99) if s.get_total_count() else 0} for t, s in sums.items()}))
`

// readLog reads a log with hdrhistogram-go.
func readLog(t *testing.T, raw []byte) map[string]logged {
	t.Helper()
	sums, out := map[string]*hdrhistogram.Histogram{}, map[string]logged{}
	reader := hdrhistogram.NewHistogramLogReader(bytes.NewReader(raw))
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		tag := h.Tag()
		if sums[tag] == nil {
			sums[tag] = hdrhistogram.New(1, 3_600_000_000, 3)
		}
		sums[tag].Merge(h)
		l := out[tag]
		l.Lines++
		out[tag] = l
	}
	for tag, l := range out {
		l.Calls, l.P50, l.P99 = sums[tag].TotalCount(), sums[tag].ValueAtQuantile(50), sums[tag].ValueAtQuantile(99)
		out[tag] = l
	}
	return out
}

// What a log says without a tag is the measured part: as many calls, and the same
// percentiles, as the document's own distribution.
func TestHDRLogIsTheDocument(t *testing.T) {
	for name, doc := range loadDocuments() {
		got := readLog(t, rendered(t, func(w io.Writer) error { return HDRLog(w, doc) }))
		want := map[string]logged{}
		for i := range doc.Load.Periods {
			p := &doc.Load.Periods[i]
			tag := map[bool]string{true: "", false: "drain"}[p.Measured]
			if !p.Measured && p.FromS < doc.Load.WarmupS {
				tag = "warmup"
			}
			l := want[tag]
			l.Lines++
			l.Calls += p.Outcomes["ok"]
			want[tag] = l
		}
		for tag, l := range want {
			if got[tag].Lines != l.Lines || got[tag].Calls != l.Calls {
				t.Errorf("%s, tag %q: %d lines of %d calls, want %d of %d", name, tag, got[tag].Lines, got[tag].Calls, l.Lines, l.Calls)
			}
		}
		h, ok := doc.Histograms["load/latency"]
		if !ok || len(doc.Load.Levels) > 1 {
			continue
		}
		whole, err := decoded(&h)
		if err != nil {
			t.Fatal(err)
		}
		if l := got[""]; l.Calls != whole.TotalCount() || l.P99 != whole.ValueAtQuantile(99) {
			t.Errorf("%s: the log has %d calls and p99 %d, the document %d and %d", name, l.Calls, l.P99, whole.TotalCount(), whole.ValueAtQuantile(99))
		}
	}
}

// Another implementation of HdrHistogram reads the same from the same log.
func TestHDRLogReadByPython(t *testing.T) {
	command := peers.PythonScript(t, pythonReader)
	for _, name := range []string{"load-stall", "load-steps", "load-llm", "load-failed", "load-unsent"} {
		raw := rendered(t, func(w io.Writer) error { return HDRLog(w, loadDocuments()[name]) })
		path := filepath.Join(t.TempDir(), name+".hlog")
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(command[0], append(command[1:], path)...).Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, stderrOf(err))
		}
		got := map[string]logged{}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s: %q: %v", name, out, err)
		}
		if diff := cmp.Diff(readLog(t, raw), got); diff != "" {
			t.Errorf("%s (-go +python):\n%s", name, diff)
		}
	}
}

func stderrOf(err error) string {
	if exit, ok := err.(*exec.ExitError); ok {
		return string(exit.Stderr)
	}
	return ""
}

// Tags hold no character that would end them.
func TestLogTag(t *testing.T) {
	for in, want := range map[string]string{"ttft": "ttft", "step/a b/c,d": "step/a_b/c_d", "step/browse/": "step/browse", "x\ny\r\x00天": "x_y___", "": ""} {
		if got := logTag(in); got != want {
			t.Errorf("logTag(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLiveJSON(t *testing.T) {
	var b bytes.Buffer
	n := LiveNumbers{Achieved: 95.5, InFlight: 64, P50: ptr(21.3), P95: ptr(1280.0), P99: ptr(inf), Outcomes: map[string]int64{"ok": 95, "timeout": 2}, Dropped: 7}
	line := LiveLine{T: 12, Span: 1, Stage: "load", Model: "open", Asked: 100, LiveNumbers: n, By: "zone", Rows: []LivePart{{Name: "e\nu", LiveNumbers: LiveNumbers{Achieved: inf}}}}
	if err := LiveJSON(&b, line); err != nil {
		t.Fatal(err)
	}
	want := `{"t_s":12,"window_s":1,"stage":"load","model":"open","asked":100,"achieved":95.5,"in_flight":64,"p50_ms":21.3,"p95_ms":1280,"p99_ms":null,"outcomes":{"ok":95,"timeout":2},"dropped":7,` +
		`"by":"zone","parts":[{"name":"e\nu","achieved":0,"in_flight":0,"p50_ms":null,"p95_ms":null,"p99_ms":null,"outcomes":{},"dropped":0}]}` + "\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if line.P99 == nil || line.Rows[0].Achieved != inf {
		t.Error("the caller's line was changed")
	}
}

// A histogram that cannot be read is named.
func TestHDRLogNamesTheBroken(t *testing.T) {
	doc := stalled()
	doc.Load.Periods[3].Histogram = &result.Histogram{Encoding: histogramEncoding, Unit: "us", Data: "HISTF"}
	err := HDRLog(io.Discard, doc)
	if err == nil || !bytes.HasPrefix([]byte(err.Error()), []byte("period 4, at 1.5s: a histogram cannot be read: ")) {
		t.Errorf("error %v", err)
	}
}
