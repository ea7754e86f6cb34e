package spec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
)

func TestParseStages(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []wire.Ramp
		open bool
	}{
		{"30s:10,2m:200,30s:0", []wire.Ramp{{For: 30 * time.Second, To: 10}, {For: 2 * time.Minute, From: 10, To: 200}, {For: 30 * time.Second, From: 200}}, false},
		{"10s:=5/s, 1m:=50.5/s", []wire.Ramp{{For: 10 * time.Second, From: 5000, To: 5000}, {For: time.Minute, From: 50500, To: 50500}}, true},
		{"10s:100/s,10s:0", []wire.Ramp{{For: 10 * time.Second, To: 100_000}, {For: 10 * time.Second, From: 100_000}}, true},
		{"5s:0,10s:100/s", []wire.Ramp{{For: 5 * time.Second}, {For: 10 * time.Second, To: 100_000}}, true},
	} {
		got, open, err := ParseStages(tt.text)
		if err != nil || open != tt.open {
			t.Errorf("%s: open %v, %v", tt.text, open, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{"30s", "stage 1, \"30s\": has no colon"},
		{"30s:10,x:3", "stage 2, \"x:3\""},
		{"30s:10,30s:5/s", "cannot be mixed"},
		{"30s:5/s,30s:10", "cannot be mixed"},
		{"30s:0", "never leaves 0"},
		{"0s:5", "no duration above 0"},
		{"1s:-5", "no number of callers"},
		{"1s:NaN/s", "no rate from 0"},
		{"1s:2000000/s", "no rate from 0"},
		{"1s:200000", "at most 100000 callers"},
		{strings.Repeat("1s:1,", 100) + "1s:1", "at most 100"},
	} {
		if _, _, err := ParseStages(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", tt.text, err, tt.want)
		}
	}
}

func loadSpec(change func(*Spec)) *Spec {
	s := Default()
	s.TargetText, s.Load = "http://127.0.0.1:1/mcp", DefaultLoad()
	change(&s)
	return &s
}

func TestLoadDefaults(t *testing.T) {
	s := loadSpec(func(*Spec) {})
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if l := s.Load; l.Open || l.Concurrency != 1 || l.Duration != 10*time.Second || l.WarmupTime != time.Second || s.Concurrency != 1 || s.ScanTimeout < 20*time.Second {
		t.Errorf("%+v, time limit %v", l, s.ScanTimeout)
	}
	s = loadSpec(func(s *Spec) { s.Load.Stages = "30s:10,2m:200,30s:0" })
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if l := s.Load; l.Open || l.Length() != 3*time.Minute || l.Peak() != 200 || s.Concurrency != 200 || l.WarmupTime != 0 {
		t.Errorf("%+v of %v up to %d", l, l.Length(), l.Peak())
	}
	s = loadSpec(func(s *Spec) { s.Load.Rate, s.Load.Duration = 12.5, 5*time.Minute })
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if l := s.Load; !l.Open || l.Peak() != 12_500 || l.WarmupTime != MaxWarmup || s.Rate != 12.5 {
		t.Errorf("%+v", l)
	}
}

func TestLoadErrors(t *testing.T) {
	knee := DefaultKnee()
	for _, tt := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Load.Rate, s.Load.Concurrency = 5, 5 }, "--rate is an open loop and --concurrency a closed one"},
		{func(s *Spec) { s.Load.Requests, s.Load.Duration = 5, 5 }, "both end the load"},
		{func(s *Spec) { s.Load.Stages, s.Load.Rate = "1s:1", 5 }, "--stages is the whole course"},
		{func(s *Spec) { s.Load.Stages = "1s:1/s,1s:4" }, "cannot be mixed"},
		{func(s *Spec) { s.Load.Knee = &knee }, "--find-knee needs --slo"},
		{func(s *Spec) { s.Load.Knee, s.Load.SLO, s.Load.Rate = &knee, "p95<1s", 5 }, "--find-knee chooses the arrival rates itself"},
		{func(s *Spec) {
			s.Load.Knee, s.Load.SLO = &Knee{From: 5, To: 1, Precision: 0.1, Confirmations: 1}, "p95<1s"
		}, "--knee-from is 5 and --knee-to 1"},
		{func(s *Spec) { s.Load.SLO = "p95" }, "--slo: objective \"p95\": has no <"},
		{func(s *Spec) { s.Load.Poisson = true }, "--arrivals poisson is for an open loop"},
		{func(s *Spec) { s.Load.Think, s.Load.Rate = time.Second, 5 }, "--think is for callers"},
		{func(s *Spec) { s.Load.WarmupTime = time.Minute }, "--warmup-time is 1m0s, the whole load only 10s"},
		{func(s *Spec) { s.Load.Processes = 2 }, "--processes starts several servers of a stdio target"},
		{func(s *Spec) { s.Load.Concurrency = 1e6 }, "--concurrency is 1000000"},
	} {
		err := loadSpec(tt.change).Validate()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q in it", err, tt.want)
		}
	}
}

func FuzzParseStages(f *testing.F) {
	f.Add("30s:10,2m:200,30s:0")
	f.Add("1s:=5/s,1s:0")
	f.Fuzz(func(t *testing.T, text string) {
		ramps, _, err := ParseStages(text)
		if err != nil {
			return
		}
		last := int64(0)
		for i, r := range ramps {
			if r.For <= 0 || r.From < 0 || r.To < 0 || r.From != last && r.From != r.To {
				t.Errorf("%q: stage %d %+v after level %d", text, i, r, last)
			}
			last = r.To
		}
	})
}

// TestRowsStayOutOfReports: rows of a feeder may be credentials.
func TestRowsStayOutOfReports(t *testing.T) {
	open := func(string) ([]byte, error) { return []byte("name,password\nanna,hunter2\n"), nil }
	w, err := ParseWorkload("mix.yaml", []byte("feeders:\n  users: {file: users.csv}\ntools:\n  - {tool: login, args: {user: \"${users.name}\", pass: \"${users.password}\"}}\n"), open)
	if err != nil {
		t.Fatal(err)
	}
	s := loadSpec(func(s *Spec) { s.Load.Workload = w })
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	raw, err := s.JSON()
	if err != nil || strings.Contains(string(raw), "hunter2") || !strings.Contains(string(raw), "1 rows, sha256 ") {
		t.Errorf("%v: %s", err, raw)
	}
	if len(w.Feeders[0].Rows) != 1 {
		t.Error("the rows are gone from the workload itself")
	}
}
