package workload_test

import (
	"encoding/json"
	"fmt"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/workload"
	"ordeal/metrics"
)

// A caller runs three operations of a script whose second answer lacks what its
// third call needs.
func Example() {
	plan, err := workload.Compile(&wire.Workload{Seed: "42", Scenarios: []wire.Scenario{{Name: "buy", Weight: 1, Steps: []wire.Step{
		{Name: "search", Tool: "search", Args: json.RawMessage(`{"query":"item ${op}","limit":"${int(1,9)}"}`), Extract: map[string]string{"id": "/results/0/id"}, Think: time.Millisecond},
		{Name: "buy", Tool: "buy", Args: json.RawMessage(`{"id":"${id}"}`)},
	}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	answers := []string{`{"results":[{"id":"a"}]}`, `{"results":[]}`, `{"results":[{"id":3}]}`}
	run, steps := plan.NewRun(), plan.NewSteps()
	for op := range uint64(3) {
		last, sum := metrics.OK, time.Duration(0)
		for run.Start(op, 0); last == metrics.OK && run.Next(); {
			fmt.Printf("%d after %v: %s %s\n", op, run.Wait, run.Tool, run.Args)
			sum += run.Wait + time.Millisecond
			if err := run.Take(json.RawMessage(answers[op]), ""); err != nil {
				last = metrics.InvalidResponse
				fmt.Println(err)
			}
			steps.Add(run.ID, last, time.Millisecond)
		}
		steps.Add(run.Whole, last, sum)
	}
	for _, s := range steps.Tallies() {
		fmt.Printf("%s/%s: %d ok in %.1f ms, %d invalid_response\n", s.Scenario, s.Step, s.Outcomes[metrics.OK], s.Latency.Mean()/1000, s.Outcomes[metrics.InvalidResponse])
	}
	// Output:
	// 0 after 0s: search {"query":"item 0","limit":7}
	// 0 after 1ms: buy {"id":"a"}
	// 1 after 0s: search {"query":"item 1","limit":2}
	// step search: /results/0/id not in the answer
	// 2 after 0s: search {"query":"item 2","limit":2}
	// 2 after 1ms: buy {"id":3}
	// buy/: 2 ok in 3.0 ms, 1 invalid_response
	// buy/search: 2 ok in 1.0 ms, 1 invalid_response
	// buy/buy: 2 ok in 1.0 ms, 0 invalid_response
}
