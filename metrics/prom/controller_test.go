package prom

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestController(t *testing.T) {
	_, c := calledOnce()
	c.RunState(Running)
	got := valuesOf(scrape(t, start(t, Options{}, c), acceptText))
	delete(got, build(t, got))
	want := map[string]float64{
		"ordeal_run_info{command=scan}{run=" + aRun + "}": 1, "ordeal_run_state{state=running}": 1,
		"ordeal_run_stage_operations_planned": 100, "ordeal_run_stage_operations_done": 40, "ordeal_run_stage_operations_failed": 3,
		"ordeal_agents{state=ready}": 5, "ordeal_agents{state=busy}": 4, "ordeal_agents{state=draining}": 3,
		"ordeal_agents{state=incompatible}": 2, "ordeal_agents{state=lost}": 1,
		"ordeal_units_dispatched_total": 12, "ordeal_units_redelivered_total": 1, "ordeal_results_ignored_total": 1,
		"ordeal_operations_reissued_total": 7, "ordeal_gang_start_skew_seconds": 1, "ordeal_gang_members_lost_total": 2,
		"ordeal_controller_lease_generation": 4, "ordeal_controller_lease_renewals_total": 1,
		"ordeal_halts_total{reason=operator}": 1, "ordeal_nats_reconnects_total": 1,
	}
	if diff := cmp.Diff(want, without(got)); diff != "" {
		t.Error(diff)
	}
}

// TestOneRun: a new run takes the place of the old one, state and progress
// included.
func TestOneRun(t *testing.T) {
	c := NewController()
	s := start(t, Options{}, c)
	of := func() map[string]float64 {
		got := map[string]float64{}
		for series, v := range without(valuesOf(scrape(t, s, ""))) {
			if strings.HasPrefix(series, "ordeal_run_") {
				got[series] = v
			}
		}
		return got
	}
	if got := of(); len(got) != 0 {
		t.Errorf("before the first run: %v", got)
	}
	c.RunStarted("20261201-093600-0123456789", "scan")
	c.Progress(Progress{Planned: 10, Done: 10, Failed: 1})
	c.RunState(Stopped)
	c.RunStarted("20261201-100000-abcdefabcd", "load")
	want := map[string]float64{"ordeal_run_info{command=load}{run=20261201-100000-abcdefabcd}": 1, "ordeal_run_state{state=running}": 1}
	if diff := cmp.Diff(want, of()); diff != "" {
		t.Error(diff)
	}
	c.RunState(Failed)
	want = map[string]float64{"ordeal_run_info{command=load}{run=20261201-100000-abcdefabcd}": 1, "ordeal_run_state{state=failed}": 1}
	if diff := cmp.Diff(want, of()); diff != "" {
		t.Error(diff)
	}
}

// TestCountersDoNotFall: a number that is not positive is no event.
func TestCountersDoNotFall(t *testing.T) {
	c := NewController()
	for _, n := range []int{0, -1} {
		c.UnitsDispatched(n)
		c.OperationsReissued(int64(n))
		c.GangMembersLost(n)
	}
	got := without(valuesOf(scrape(t, start(t, Options{}, c), "")))
	delete(got, build(t, got))
	if len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
