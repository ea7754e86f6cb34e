package prom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// run is the current run of a controller, a collector: one lock, so that no
// scrape sees the name of one run beside the progress of another.
type run struct {
	info, state, planned, done, failed *prometheus.Desc

	mu       sync.Mutex
	id       string // empty before the first run
	command  string
	at       State
	progress Progress
}

func newRun() *run {
	return &run{
		info: prometheus.NewDesc("ordeal_run_info", "The run of this controller: the current one, or the last.", []string{"run", "command"}, nil),
		state: prometheus.NewDesc("ordeal_run_state", "1 for the state that the run is in, 0 for the others.",
			[]string{"state"}, nil),
		planned: prometheus.NewDesc("ordeal_run_stage_operations_planned", "Operations of the stage under way.", nil, nil),
		done:    prometheus.NewDesc("ordeal_run_stage_operations_done", "Operations of the stage under way that are done.", nil, nil),
		failed:  prometheus.NewDesc("ordeal_run_stage_operations_failed", "Operations of the stage under way that failed.", nil, nil),
	}
}

func (r *run) start(id, command string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id, r.command, r.at, r.progress = runID(id), oneOf(commands, command), Running, Progress{}
}

func (r *run) enter(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = s
}

func (r *run) advance(p Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = p
}

// Describe implements prometheus.Collector.
func (r *run) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{r.info, r.state, r.planned, r.done, r.failed} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (r *run) Collect(ch chan<- prometheus.Metric) {
	for _, m := range r.now() {
		ch <- m
	}
}

func (r *run) now() []prometheus.Metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
		return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	all := []prometheus.Metric{gauge(r.planned, float64(r.progress.Planned)),
		gauge(r.done, float64(r.progress.Done)), gauge(r.failed, float64(r.progress.Failed))}
	for _, s := range states {
		in := 0.0
		if s == string(r.at) {
			in = 1
		}
		all = append(all, gauge(r.state, in, s))
	}
	if r.id != "" {
		all = append(all, gauge(r.info, 1, r.id, r.command))
	}
	return all
}
