package prom

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"ordeal/metrics"
)

// BenchmarkOperations is what an agent pays for n calls: recording each, which it
// does anyway, and one delta. library is what it would pay for the same calls
// one by one.
func BenchmarkOperations(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10_000} {
		values := latencies(n)
		b.Run(fmt.Sprintf("delta/%d", n), func(b *testing.B) {
			a, t := NewAgent(AgentInfo{}), metrics.NewTally()
			t.Outcomes[metrics.OK] = int64(n)
			b.ReportAllocs()
			for b.Loop() {
				t.Latency.Reset()
				for _, us := range values {
					t.Latency.Record(us)
				}
				a.Operations(t)
			}
		})
		b.Run(fmt.Sprintf("library/%d", n), func(b *testing.B) {
			h, c := library(callBounds), prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
			b.ReportAllocs()
			for b.Loop() {
				for _, us := range values {
					h.Observe(float64(us) / 1e6)
					c.Inc()
				}
			}
		})
	}
}

// latencies between 1 and 100 ms, in no order.
func latencies(n int) []int64 {
	values := drawn(7, n)
	for i, us := range values {
		values[i] = 1000 + us%99_000
	}
	return values
}

// BenchmarkScrape is one request, over the loopback, of an agent that has seen
// latencies of two powers of ten.
func BenchmarkScrape(b *testing.B) {
	a, c := calledOnce()
	t := metrics.NewTally()
	for _, us := range latencies(5000) {
		t.Latency.Record(us)
	}
	a.Operations(t)
	s := start(b, Options{Version: "0.1.0"}, a, c)
	for form, accept := range map[string]string{"text": acceptText, "protobuf": acceptProto} {
		b.Run(form, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				body, _ := get(b, s, "/metrics", accept, http.StatusOK)
				size = len(body)
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
