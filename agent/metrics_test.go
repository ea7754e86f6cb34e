package agent

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics/prom"
)

// scrape reads the series of an agent.
func scrape(t *testing.T, url string) map[string]string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(ordeal_[^ ]+) (\S+)`).FindAllStringSubmatch(string(body), -1) {
		series[m[1]] = m[2]
	}
	return series
}

// What became of units, leases and calls is what Prometheus is told.
func TestAgentIsWatched(t *testing.T) {
	w := newWorld(t)
	watch := prom.NewAgent(prom.AgentInfo{ID: "a1"})
	served, err := prom.Serve(t.Context(), prom.Options{Addr: "127.0.0.1:0"}, watch)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := served.Stop(); err != nil {
			t.Error(err)
		}
	}()
	w.boss.change(func(b *boss) { b.grant.TTL = 400 * time.Millisecond })
	w.agent(Options{ID: "a1", Metrics: watch})
	bad := mockUnit("bad", 1)
	bad.Target.Kind = "carrier pigeon"
	w.publish(mockUnit("u1", 2000), bad)
	w.result()
	w.result()
	w.control("r1", wire.Control{Kind: wire.Quota, Pause: 1500 * time.Millisecond})
	w.publish(mockUnit("u2", endless))
	w.event(wire.Began)
	w.boss.change(func(b *boss) { b.mute = true })
	w.event(wire.Returned)
	want := map[string]string{
		"ordeal_units_started_total": "3", "ordeal_units_completed_total": "1", "ordeal_units_failed_total": "1", "ordeal_units_returned_total": "1",
		"ordeal_units_in_progress": "0", "ordeal_agent_lease_held": "0", "ordeal_agent_lease_expirations_total": "1", "ordeal_quota_pause_seconds_total": "1.5",
	}
	eventually(t, "the series", func() bool {
		got := scrape(t, "http://"+served.Addr()+"/metrics")
		for name, value := range want {
			if got[name] != value {
				return false
			}
		}
		return true
	})
	got := scrape(t, "http://"+served.Addr()+"/metrics")
	if ok := got[`ordeal_agent_operations_total{outcome="ok"}`]; ok == "" || ok == "0" || strings.HasPrefix(ok, "-") {
		t.Errorf("%q operations went well, want those of u1 at least", ok)
	}
}
