package prom

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/metrics"
)

func TestAgent(t *testing.T) {
	a, _ := calledOnce()
	a.Operations(tally(metrics.ToolError, time.Millisecond, time.Millisecond))
	a.Operations(tally(metrics.Connection, time.Millisecond))
	a.Operations(tally(metrics.Timeout, 3*time.Second))
	a.Operations(tally(metrics.Cancelled, time.Second))
	a.Operations(tally(metrics.HarnessError, time.Second))
	a.QuotaPause(-time.Second)
	a.UnitStarted()
	want := map[string]float64{
		"ordeal_agent_info{agent=host-17}{pool=default,gpu}{version=0.1.0}{zone=eu-1}": 1,

		"ordeal_agent_operations_total{outcome=ok}":            1,
		"ordeal_agent_operations_total{outcome=tool_error}":    2,
		"ordeal_agent_operations_total{outcome=connection}":    1,
		"ordeal_agent_operations_total{outcome=timeout}":       1,
		"ordeal_agent_operations_total{outcome=cancelled}":     1,
		"ordeal_agent_operations_total{outcome=harness_error}": 1,
		"ordeal_operation_duration_seconds{outcome=ok}":        1,
		"ordeal_operation_duration_seconds{outcome=failed}":    3,
		"ordeal_operation_duration_seconds{outcome=timeout}":   1,

		"ordeal_units_started_total": 2, "ordeal_units_completed_total": 1, "ordeal_units_returned_total": 1,
		"ordeal_units_failed_total": 1, "ordeal_units_in_progress": -1, // one unit ended in three ways
		"ordeal_agent_lease_held": 2, "ordeal_agent_lease_expirations_total": 1, "ordeal_agent_lease_refusals_total": 1,
		"ordeal_generator_lag_seconds": 1, "ordeal_generator_saturated_total": 1, "ordeal_nats_reconnects_total": 1,
		"ordeal_quota_pause_seconds_total": 1.5,
	}
	got := valuesOf(scrape(t, start(t, Options{}, a), acceptText))
	delete(got, build(t, got))
	if diff := cmp.Diff(want, without(got)); diff != "" {
		t.Error(diff)
	}
}

// TestFromWhenDue: in open loop a call's duration begins when it was due, not
// when it was sent.
func TestFromWhenDue(t *testing.T) {
	a, late := NewAgent(AgentInfo{}), metrics.NewTally()
	late.Add(&metrics.Exchange{Outcome: metrics.OK, Latency: 20 * time.Millisecond}, 30*time.Millisecond)
	a.Operations(late)
	f := scrape(t, start(t, Options{}, a), acceptProto)["ordeal_operation_duration_seconds"]
	for _, m := range f.GetMetric() {
		if m.GetLabel()[0].GetValue() == "ok" && m.GetHistogram().GetSampleSum() == 0.05 {
			return
		}
	}
	t.Errorf("no success of 50 ms in %v", f)
}

// build finds the series of the build.
func build(t *testing.T, values map[string]float64) string {
	t.Helper()
	for series := range values {
		if len(series) > 17 && series[:17] == "ordeal_build_info" {
			return series
		}
	}
	t.Error("no ordeal_build_info")
	return ""
}

// TestZeroFromTheStart: the first event is a rise, not a new series, of which
// Prometheus could not tell the rise.
func TestZeroFromTheStart(t *testing.T) {
	a, c := calledOnce()
	busy := valuesOf(scrape(t, start(t, Options{Version: "0.1.0"}, a, c), acceptProto))
	idle := valuesOf(scrape(t, start(t, Options{Version: "0.1.0"}, NewAgent(AgentInfo{Version: "0.1.0", ID: "host-17", Zone: "eu-1", Pool: "default,gpu"}), NewController()), acceptProto))
	delete(busy, "ordeal_run_info{command=scan}{run="+aRun+"}")
	if diff := cmp.Diff(slices.Sorted(maps.Keys(busy)), slices.Sorted(maps.Keys(idle))); diff != "" {
		t.Error(diff)
	}
	if len(idle) < 50 {
		t.Errorf("%d series", len(idle))
	}
}

// TestEveryMethod: the tables of calls have every method, and each does nothing
// on nil.
func TestEveryMethod(t *testing.T) {
	var a *Agent
	var c *Controller
	check := func(v any, called []string) {
		typ, names := reflect.TypeOf(v), []string{}
		for m := range typ.Methods() {
			names = append(names, m.Name)
		}
		if diff := cmp.Diff(names, called); diff != "" {
			t.Errorf("%v: %s", typ, diff)
		}
	}
	check(a, slices.Sorted(maps.Keys(agentCalls)))
	check(c, slices.Sorted(maps.Keys(controllerCalls)))
	for _, call := range agentCalls {
		call(a)
	}
	for _, call := range controllerCalls {
		call(c)
	}
	if got := without(valuesOf(scrape(t, start(t, Options{}, a, c), ""))); len(got) != 1 {
		t.Errorf("nothing but the build is there, got %v", got)
	}
}

// TestNotACount: what cannot be a count of attempts leaves the counters as they
// are, and no panic.
func TestNotACount(t *testing.T) {
	a := NewAgent(AgentInfo{})
	a.Operations(nil)
	a.Lag(nil)
	a.Operations(&metrics.Tally{Outcomes: metrics.Counts{metrics.OK: -5, metrics.Outcome(200): 7, metrics.Timeout: 3}})
	got := without(valuesOf(scrape(t, start(t, Options{}, a), "")))
	delete(got, build(t, got))
	want := map[string]float64{"ordeal_agent_info{agent=}{pool=}{version=invalid}{zone=}": 1, "ordeal_agent_operations_total{outcome=timeout}": 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestWhileScraped: with many goroutines at work every scrape sees as many
// durations as attempts, and at the end nothing is missing.
func TestWhileScraped(t *testing.T) {
	const workers, rounds = 4, 200
	a := NewAgent(AgentInfo{Version: "0.1.0"})
	s := start(t, Options{}, a)
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for range rounds {
				a.UnitStarted()
				a.Operations(tally(metrics.OK, time.Millisecond, 2*time.Millisecond))
				a.Operations(tally(metrics.ServerError, time.Millisecond))
				a.Lag(distOf(1, 2, 3))
				a.UnitDone()
			}
		})
	}
	consistent := func() map[string]float64 {
		got := valuesOf(scrape(t, s, acceptProto))
		for attempts, durations := range map[string]string{"ok": "ok", "server_error": "failed"} {
			if n, d := got["ordeal_agent_operations_total{outcome="+attempts+"}"], got["ordeal_operation_duration_seconds{outcome="+durations+"}"]; n != d {
				t.Errorf("%v attempts %s, %v durations", n, attempts, d)
			}
		}
		return got
	}
	for range 20 {
		consistent()
	}
	work.Wait()
	got := consistent()
	if got["ordeal_agent_operations_total{outcome=ok}"] != 2*workers*rounds || got["ordeal_generator_lag_seconds"] != 3*workers*rounds ||
		got["ordeal_units_completed_total"] != workers*rounds || got["ordeal_units_in_progress"] != 0 {
		t.Errorf("got %v", without(got))
	}
}
