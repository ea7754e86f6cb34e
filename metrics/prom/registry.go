package prom

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// registry makes series and registers them. That panics on a name used twice,
// which the first test that makes an Agent or a Controller finds.
type registry struct{ *prometheus.Registry }

func newRegistry() registry { return registry{prometheus.NewRegistry()} }

func (r registry) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func (r registry) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.MustRegister(g)
	return g
}

// counters has one counter for each value of a label, from the start.
func (r registry) counters(name, help, label string, values []string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	r.MustRegister(v)
	for _, value := range values {
		v.WithLabelValues(value)
	}
	return v
}

// gauges has one gauge for each value of a label, from the start.
func (r registry) gauges(name, help, label string, values []string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
	r.MustRegister(v)
	for _, value := range values {
		v.WithLabelValues(value)
	}
	return v
}

// info is a series that is always 1; its labels are what it says.
func (r registry) info(name, help string, labels prometheus.Labels) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	g.Set(1)
	r.MustRegister(g)
}

// newProcess holds what is true of a process whatever works in it: the build,
// the Go runtime, and what the system says of it.
func newProcess(build string) *prometheus.Registry {
	r := newRegistry()
	r.info("ordeal_build_info", "The build of this process.", prometheus.Labels{
		"version": version(build), "goversion": runtime.Version()})
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r.Registry
}
