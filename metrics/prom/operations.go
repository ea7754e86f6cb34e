package prom

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ordeal/metrics"
)

// durationOutcomes are the outcomes that durations are told apart by: a tally
// keeps the latency of all failures but timeouts in one distribution.
var durationOutcomes = [...]string{"ok", "failed", "timeout"}

// operations counts attempts and their durations: one lock for both, so that a
// scrape sees as many durations as attempts.
type operations struct {
	total    *prometheus.Desc
	duration *prometheus.Desc
	created  time.Time

	mu        sync.Mutex
	outcomes  []int64 // by metrics.Outcome
	durations [len(durationOutcomes)]counts
}

func newOperations() *operations {
	o := &operations{
		total: prometheus.NewDesc("ordeal_agent_operations_total",
			"Attempts by outcome, injected faults included.", []string{"outcome"}, nil),
		duration: prometheus.NewDesc("ordeal_operation_duration_seconds",
			"Duration of attempts that say something about the target, in open loop counted from when they were due; failed is every failure but a timeout.",
			[]string{"outcome"}, nil),
		created:  time.Now(),
		outcomes: make([]int64, len(metrics.Outcomes())),
	}
	for i := range o.durations {
		o.durations[i] = newCounts(callBounds)
	}
	return o
}

func (o *operations) add(t *metrics.Tally) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for outcome, n := range t.Outcomes {
		if int(outcome) < len(o.outcomes) && n > 0 { // anything else is no count of attempts
			o.outcomes[outcome] += n
		}
	}
	for i, d := range [...]*metrics.Dist{&t.Latency, &t.Failed, &t.TimedOut} {
		o.durations[i].add(d)
	}
}

// Describe implements prometheus.Collector.
func (o *operations) Describe(ch chan<- *prometheus.Desc) {
	ch <- o.total
	ch <- o.duration
}

// Collect implements prometheus.Collector.
func (o *operations) Collect(ch chan<- prometheus.Metric) {
	for _, m := range o.now() {
		ch <- m
	}
}

func (o *operations) now() []prometheus.Metric {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []prometheus.Metric
	for outcome, n := range o.outcomes {
		all = append(all, prometheus.MustNewConstMetricWithCreatedTimestamp(o.total, prometheus.CounterValue,
			float64(n), o.created, metrics.Outcome(outcome).String()))
	}
	for i, name := range durationOutcomes {
		all = append(all, o.durations[i].metric(o.duration, o.created, name))
	}
	return all
}
