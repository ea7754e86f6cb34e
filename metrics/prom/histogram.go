package prom

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ordeal/metrics"
)

// histogram is one distribution of durations, a collector without labels.
type histogram struct {
	desc    *prometheus.Desc
	created time.Time

	mu     sync.Mutex
	counts counts
}

func newHistogram(name, help string, bounds []int64) *histogram {
	return &histogram{desc: prometheus.NewDesc(name, help, nil, nil), created: time.Now(), counts: newCounts(bounds)}
}

func (h *histogram) add(d *metrics.Dist) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.add(d)
}

func (h *histogram) record(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.record(d)
}

// Describe implements prometheus.Collector.
func (h *histogram) Describe(ch chan<- *prometheus.Desc) { ch <- h.desc }

// Collect implements prometheus.Collector.
func (h *histogram) Collect(ch chan<- prometheus.Metric) { ch <- h.now() }

func (h *histogram) now() prometheus.Metric {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts.metric(h.desc, h.created)
}
