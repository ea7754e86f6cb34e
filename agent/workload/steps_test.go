package workload

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// TestStepsOfAnySplit: callers that share the calls count what one would.
func TestStepsOfAnySplit(t *testing.T) {
	p, rng := compiled(t, shopping()), rand.New(rand.NewPCG(3, 4))
	whole, parts := p.NewSteps(), []*Steps{p.NewSteps(), p.NewSteps(), p.NewSteps()}
	run := p.NewRun()
	for op := range uint64(20_000) {
		part := parts[rng.IntN(3)]
		last, sum := metrics.OK, time.Duration(0)
		for run.Start(op, 0); last == metrics.OK && run.Next(); {
			if rng.IntN(10) == 0 {
				last = metrics.Outcome(rng.IntN(outcomes))
			}
			latency := time.Duration(rng.IntN(1_000_000)) * time.Microsecond
			sum += latency
			_ = run.Take(json.RawMessage(`{"results":[{"id":1}]}`), "")
			whole.Add(run.ID, last, latency)
			part.Add(run.ID, last, latency)
		}
		whole.Add(run.Whole, last, sum)
		part.Add(run.Whole, last, sum)
	}
	merged := p.NewSteps()
	for _, i := range rng.Perm(3) {
		merged.Merge(parts[i])
	}
	want, got := whole.Tallies(), merged.Tallies()
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, s := range got {
		names = append(names, s.Scenario+"/"+s.Step)
	}
	if diff := cmp.Diff([]string{"search/", "search/search", "search/open", "chat/", "chat/chat", "ping/", "ping/ping"}, names); diff != "" {
		t.Error(diff)
	}
	merged.Reset()
	if left := merged.Tallies(); left != nil {
		t.Errorf("after a reset: %v", left)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestStepsFitAMessage: the tallies of the largest mix, each at its largest, leave
// room in a message for the rest of a result.
func TestStepsFitAMessage(t *testing.T) {
	w, rng := &wire.Workload{}, rand.New(rand.NewPCG(5, 6))
	for i := range MaxScenarios {
		sc := wire.Scenario{Name: fmt.Sprintf("scenario %d", i), Weight: 1}
		for j := range MaxAllSteps / MaxScenarios {
			sc.Steps = append(sc.Steps, wire.Step{Name: fmt.Sprintf("step %d", j)})
		}
		w.Scenarios = append(w.Scenarios, sc)
	}
	p := compiled(t, w)
	steps := p.NewSteps()
	for id := range p.tallies {
		for range metrics.ExactLimit {
			steps.Add(id, metrics.OK, time.Duration(rng.ExpFloat64()*float64(200*time.Millisecond)))
		}
	}
	if size := len(asJSON(t, steps.Tallies())); size > wire.MaxPayload*3/4 {
		t.Errorf("%d tallies are %d bytes, want at most three quarters of %d", len(p.tallies), size, wire.MaxPayload)
	}
}
