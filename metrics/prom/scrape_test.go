package prom

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"ordeal/metrics"
)

// agentCalls and controllerCalls call every method once. TestEveryMethod holds
// them against the types, so that no method is left out of the other tests.
var agentCalls = map[string]func(*Agent){
	"Operations":   func(a *Agent) { a.Operations(tally(metrics.OK, 20*time.Millisecond)) },
	"UnitStarted":  (*Agent).UnitStarted,
	"UnitDone":     (*Agent).UnitDone,
	"UnitReturned": (*Agent).UnitReturned,
	"UnitFailed":   (*Agent).UnitFailed,
	"Lease":        func(a *Agent) { a.Lease(2) },
	"LeaseExpired": (*Agent).LeaseExpired,
	"LeaseRefused": (*Agent).LeaseRefused,
	"Lag":          func(a *Agent) { a.Lag(distOf(150)) },
	"Saturated":    (*Agent).Saturated,
	"Reconnects":   (*Agent).Reconnects,
	"QuotaPause":   func(a *Agent) { a.QuotaPause(1500 * time.Millisecond) },
}

const aRun = "20261201-093600-0123456789"

var controllerCalls = map[string]func(*Controller){
	"RunStarted":         func(c *Controller) { c.RunStarted(aRun, "scan") },
	"RunState":           func(c *Controller) { c.RunState(Finished) },
	"Progress":           func(c *Controller) { c.Progress(Progress{Planned: 100, Done: 40, Failed: 3}) },
	"Fleet":              func(c *Controller) { c.Fleet(Fleet{Ready: 5, Busy: 4, Draining: 3, Incompatible: 2, Lost: 1}) },
	"UnitsDispatched":    func(c *Controller) { c.UnitsDispatched(12) },
	"UnitRedelivered":    (*Controller).UnitRedelivered,
	"ResultIgnored":      (*Controller).ResultIgnored,
	"OperationsReissued": func(c *Controller) { c.OperationsReissued(7) },
	"GangStarted":        func(c *Controller) { c.GangStarted(3 * time.Millisecond) },
	"GangMembersLost":    func(c *Controller) { c.GangMembersLost(2) },
	"LeaseGeneration":    func(c *Controller) { c.LeaseGeneration(4) },
	"LeaseRenewed":       (*Controller).LeaseRenewed,
	"Halted":             func(c *Controller) { c.Halted(HaltOperator) },
	"Reconnects":         (*Controller).Reconnects,
}

// calledOnce is an agent and a controller of which every method was called once,
// RunStarted first.
func calledOnce() (*Agent, *Controller) {
	a, c := NewAgent(AgentInfo{Version: "0.1.0", ID: "host-17", Zone: "eu-1", Pool: "default,gpu"}), NewController()
	controllerCalls["RunStarted"](c)
	for name, call := range controllerCalls {
		if name != "RunStarted" {
			call(c)
		}
	}
	for _, call := range agentCalls {
		call(a)
	}
	return a, c
}

func distOf(us ...int64) *metrics.Dist {
	d := &metrics.Dist{}
	for _, v := range us {
		d.Record(v)
	}
	return d
}

// tally of attempts with one outcome.
func tally(o metrics.Outcome, latencies ...time.Duration) *metrics.Tally {
	t := metrics.NewTally()
	for _, l := range latencies {
		t.Add(&metrics.Exchange{Outcome: o, Latency: l}, 0)
	}
	return t
}

// start serves on a free port of the loopback until the test ends.
func start(t testing.TB, opt Options, sources ...Source) *Server {
	t.Helper()
	opt.Addr = "127.0.0.1:0"
	s, err := Serve(t.Context(), opt, sources...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// get returns the body of an answer with that status.
func get(t testing.TB, s *Server, path, accept string, status int) (body string, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		t.Fatalf("GET %s: status %d, err %v, want %d: %s", path, res.StatusCode, err, status, raw)
	}
	return string(raw), res.Header
}

// Accept headers, as Prometheus sends them.
const (
	acceptText    = "text/plain;version=0.0.4"
	acceptMetrics = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2"
	acceptProto   = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,text/plain;version=0.0.4;q=0.2"
)

// scrape reads families by name through the server, in the form asked for.
func scrape(t testing.TB, s *Server, accept string) map[string]*dto.MetricFamily {
	t.Helper()
	body, header := get(t, s, "/metrics", accept, http.StatusOK)
	families := map[string]*dto.MetricFamily{}
	for dec := expfmt.NewDecoder(strings.NewReader(body), expfmt.ResponseFormat(header)); ; {
		f := &dto.MetricFamily{}
		if err := dec.Decode(f); errors.Is(err, io.EOF) {
			return families
		} else if err != nil {
			t.Fatal(err)
		}
		families[f.GetName()] = f
	}
}

// valuesOf lists series of ours as name{label=value} → value, a histogram by its
// count.
func valuesOf(families map[string]*dto.MetricFamily) map[string]float64 {
	values := map[string]float64{}
	for name, f := range families {
		if !strings.HasPrefix(name, "ordeal_") {
			continue
		}
		for _, m := range f.GetMetric() {
			series := name
			for _, l := range m.GetLabel() {
				series += fmt.Sprintf("{%s=%s}", l.GetName(), l.GetValue())
			}
			switch {
			case m.GetHistogram() != nil:
				values[series] = float64(m.GetHistogram().GetSampleCount())
			case m.GetCounter() != nil:
				values[series] = m.GetCounter().GetValue()
			default:
				values[series] = m.GetGauge().GetValue()
			}
		}
	}
	return values
}

// without leaves out the series that are zero.
func without(values map[string]float64) map[string]float64 {
	for series, v := range values {
		if v == 0 {
			delete(values, series)
		}
	}
	return values
}
