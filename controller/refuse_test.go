package controller

import (
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/spec"
)

// What nobody could carry out is refused before there is a run.
func TestRefusedRunsLeaveNoRecord(t *testing.T) {
	first, _ := led(t) // the only run there is
	tests := map[string]struct {
		opt  Options
		want string
	}{
		"BudgetWithoutAPrice": {Options{MaxCost: 1, Spec: spec.Spec{Target: wire.Target{Model: "unheard-of"}}}, `--max-cost needs a price: "unheard-of" is not in the table`},
		"PoolNobodyServes":    {Options{Pool: "typo", WaitAgents: time.Millisecond}, "0 of 1 agents wanted in pool typo"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.opt.Bus = first.opt.Bus
			doc, err := Run(t.Context(), tt.opt)
			if doc != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("document %v, err %v; want %q", doc, err, tt.want)
			}
			if runs, err := first.opt.Bus.Runs(t.Context()); err != nil || len(runs) != 1 {
				t.Errorf("%d runs, %v; want the one that was there", len(runs), err)
			}
		})
	}
}
