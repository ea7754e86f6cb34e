package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ordeal/metrics"
)

// AgentInfo says who an agent is; it is shown once, in ordeal_agent_info.
type AgentInfo struct {
	Version string // of the software
	ID      string
	Zone    string // empty = not said
	Pool    string // several with commas between
}

// Agent holds the series of an agent. Agents in one process share one Agent.
type Agent struct {
	registry   *prometheus.Registry
	operations *operations
	lag        *histogram

	started, completed, returned, failed prometheus.Counter
	inProgress                           prometheus.Gauge

	leaseHeld                 prometheus.Gauge
	leaseExpired, leaseDenied prometheus.Counter

	saturated, reconnects, quotaPause prometheus.Counter
}

// NewAgent returns an Agent whose every series is there from the start, at
// zero, so that the first event is a rise and not a new series.
func NewAgent(info AgentInfo) *Agent {
	r := newRegistry()
	a := &Agent{
		registry:   r.Registry,
		operations: newOperations(),
		lag:        newHistogram("ordeal_generator_lag_seconds", "How late the load generator woke up.", lateBounds),

		started:    r.counter("ordeal_units_started_total", "Units of work begun."),
		completed:  r.counter("ordeal_units_completed_total", "Units of work whose result is stored."),
		returned:   r.counter("ordeal_units_returned_total", "Units of work given back unfinished, for another agent."),
		failed:     r.counter("ordeal_units_failed_total", "Units of work that ended without a measurement."),
		inProgress: r.gauge("ordeal_units_in_progress", "Units of work in hand."),

		leaseHeld:    r.gauge("ordeal_agent_lease_held", "Leases in force: runs that this process may work for."),
		leaseExpired: r.counter("ordeal_agent_lease_expirations_total", "Leases that ran out because nobody renewed them."),
		leaseDenied:  r.counter("ordeal_agent_lease_refusals_total", "Leases asked for and refused."),

		saturated:  r.counter("ordeal_generator_saturated_total", "Load levels at which the generator itself was the limit."),
		reconnects: r.counter("ordeal_nats_reconnects_total", "Connections to NATS made anew after a loss."),
		quotaPause: r.counter("ordeal_quota_pause_seconds_total", "Time that load stood still because the target named a quota."),
	}
	r.info("ordeal_agent_info", "Who this agent is.", prometheus.Labels{
		"version": version(info.Version), "agent": name(info.ID), "zone": name(info.Zone), "pool": name(info.Pool)})
	r.MustRegister(a.operations, a.lag)
	return a
}

// Operations adds what was observed since the last call: attempts by outcome,
// and the latency of successes, failures and timeouts. t must not be in use
// elsewhere meanwhile; it is read, and may be reset afterwards.
func (a *Agent) Operations(t *metrics.Tally) {
	if a != nil && t != nil {
		a.operations.add(t)
	}
}

// UnitStarted says that a unit is in hand; one of UnitDone, UnitReturned and
// UnitFailed follows.
func (a *Agent) UnitStarted() {
	if a != nil {
		a.started.Inc()
		a.inProgress.Inc()
	}
}

// UnitDone says that the result of a unit is stored.
func (a *Agent) UnitDone() {
	if a != nil {
		a.completed.Inc()
		a.inProgress.Dec()
	}
}

// UnitReturned says that a unit went back, to be worked by another agent.
func (a *Agent) UnitReturned() {
	if a != nil {
		a.returned.Inc()
		a.inProgress.Dec()
	}
}

// UnitFailed says that a unit ended without a measurement.
func (a *Agent) UnitFailed() {
	if a != nil {
		a.failed.Inc()
		a.inProgress.Dec()
	}
}

// Lease sets how many leases the process holds.
func (a *Agent) Lease(held int) {
	if a != nil {
		a.leaseHeld.Set(float64(held))
	}
}

// LeaseExpired counts a lease that ran out; Lease says what is left.
func (a *Agent) LeaseExpired() {
	if a != nil {
		a.leaseExpired.Inc()
	}
}

// LeaseRefused counts a lease that the controller denied.
func (a *Agent) LeaseRefused() {
	if a != nil {
		a.leaseDenied.Inc()
	}
}

// Lag adds how late the load generator woke up since the last call, in µs. d
// must not be in use elsewhere meanwhile.
func (a *Agent) Lag(d *metrics.Dist) {
	if a != nil && d != nil {
		a.lag.add(d)
	}
}

// Saturated counts a load level at which the generator was the limit.
func (a *Agent) Saturated() {
	if a != nil {
		a.saturated.Inc()
	}
}

// Reconnects counts a connection to NATS that was made anew.
func (a *Agent) Reconnects() {
	if a != nil {
		a.reconnects.Inc()
	}
}

// QuotaPause adds a time for which load stood still for a quota; one that is
// not positive is none.
func (a *Agent) QuotaPause(d time.Duration) {
	if a != nil && d > 0 {
		a.quotaPause.Add(d.Seconds())
	}
}

func (a *Agent) gatherer() prometheus.Gatherer {
	if a == nil {
		return nil
	}
	return a.registry
}
