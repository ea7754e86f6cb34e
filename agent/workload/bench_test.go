package workload

import (
	"encoding/json"
	"testing"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

func benchmarkArgs(b *testing.B, args string) {
	r := compiled(b, oneStep(args, table("users", "random", []string{"name", "age"}, `["Ann",30]`, `["Bo",41]`, `["Cy",25]`))).NewRun()
	b.ReportAllocs()
	for op := uint64(0); b.Loop(); op++ {
		r.Start(op, 1)
		r.Next()
	}
}

func BenchmarkConstant(b *testing.B) { benchmarkArgs(b, `{"query":"hello","limit":10}`) }
func BenchmarkThreePlaceholders(b *testing.B) {
	benchmarkArgs(b, `{"query":"about ${users.name}","limit":"${int(1,50)}","id":"${uuid}"}`)
}
func BenchmarkPrompt1000Tokens(b *testing.B) {
	benchmarkArgs(b, `{"prompt":"${words(1000)}"}`)
}

func BenchmarkTake(b *testing.B) {
	r := compiled(b, scripted("/results/0/id")).NewRun()
	answer := json.RawMessage(`{"results":[{"id":"r-1","title":"first"},{"id":"r-2","title":"second"}],"total":2}`)
	b.ReportAllocs()
	for op := uint64(0); b.Loop(); op++ {
		r.Start(op, 1)
		r.Next()
		if err := r.Take(answer, ""); err != nil {
			b.Fatal(err)
		}
		r.Next()
	}
}

func BenchmarkStepsAdd(b *testing.B) {
	s := compiled(b, shopping()).NewSteps()
	for range metrics.ExactLimit + 1 {
		s.Add(1, metrics.OK, 1000)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Add(1, metrics.OK, 1_234_000)
	}
}

// TestCallsDoNotAllocate: once the buffer has grown.
func TestCallsDoNotAllocate(t *testing.T) {
	for name, args := range map[string]string{
		"Constant":  `{"query":"hello"}`,
		"Templated": `{"a":"x ${users.name}","b":"${int(1,50)}","c":"${uuid} ${op_id} ${normal(1,2)}","d":"${words(5)}"}`,
	} {
		r := compiled(t, oneStep(args, wire.Feeder{Name: "users", Columns: []string{"name"}, Rows: [][]json.RawMessage{{json.RawMessage(`"Ann"`)}}})).NewRun()
		op := uint64(0)
		if n := testing.AllocsPerRun(500, func() {
			r.Start(op%50, 1)
			r.Next()
			op++
		}); n >= 1 {
			t.Errorf("%s: %v allocations a call", name, n)
		}
	}
}
