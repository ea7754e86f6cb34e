package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Controller holds the series of a controller, which leads one run at a time.
type Controller struct {
	registry *prometheus.Registry
	run      *run
	skew     *histogram
	agents   *prometheus.GaugeVec
	halts    *prometheus.CounterVec

	dispatched, redelivered, ignored, reissued prometheus.Counter
	membersLost, renewals, reconnects          prometheus.Counter
	generation                                 prometheus.Gauge
}

// NewController returns a Controller whose every series is there from the
// start, at zero; only ordeal_run_info comes with the first run.
func NewController() *Controller {
	r := newRegistry()
	c := &Controller{
		registry: r.Registry,
		run:      newRun(),
		skew:     newHistogram("ordeal_gang_start_skew_seconds", "Time between the first and the last start of a gang's members.", lateBounds),
		agents:   r.gauges("ordeal_agents", "Agents of the pool by state.", "state", fleetStates),
		halts:    r.counters("ordeal_halts_total", "Runs halted, by class of the reason.", "reason", halts),

		dispatched:  r.counter("ordeal_units_dispatched_total", "Units of work queued."),
		redelivered: r.counter("ordeal_units_redelivered_total", "Units of work handed out again."),
		ignored:     r.counter("ordeal_results_ignored_total", "Results that do not count: repeated, late or stale."),
		reissued:    r.counter("ordeal_operations_reissued_total", "Operations that the target may have seen twice, because their unit was handed out again."),
		membersLost: r.counter("ordeal_gang_members_lost_total", "Agents lost from a load level that ran together."),
		renewals:    r.counter("ordeal_controller_lease_renewals_total", "Renewals of the controller's lease of its run."),
		reconnects:  r.counter("ordeal_nats_reconnects_total", "Connections to NATS made anew after a loss."),
		generation:  r.gauge("ordeal_controller_lease_generation", "Generation of the controller's lease: it rises with every controller that takes the run over."),
	}
	r.MustRegister(c.run, c.skew)
	return c
}

// RunStarted makes a run the current one, in state Running and without
// progress. An id that is none of ours is shown as invalid, a command that
// begins no run as other.
func (c *Controller) RunStarted(id, command string) {
	if c != nil {
		c.run.start(id, command)
	}
}

// RunState sets the state of the run. A state that is not in the list leaves it
// in none.
func (c *Controller) RunState(s State) {
	if c != nil {
		c.run.enter(s)
	}
}

// Progress sets how far the stage under way is.
func (c *Controller) Progress(p Progress) {
	if c != nil {
		c.run.advance(p)
	}
}

// Fleet sets how many agents there are.
func (c *Controller) Fleet(f Fleet) {
	if c == nil {
		return
	}
	for i, n := range f.counts() {
		c.agents.WithLabelValues(fleetStates[i]).Set(float64(n))
	}
}

// UnitsDispatched counts units that were queued.
func (c *Controller) UnitsDispatched(n int) {
	if c != nil {
		add(c.dispatched, int64(n))
	}
}

// UnitRedelivered counts a unit that was handed out again.
func (c *Controller) UnitRedelivered() {
	if c != nil {
		c.redelivered.Inc()
	}
}

// ResultIgnored counts a result that was repeated, late or stale.
func (c *Controller) ResultIgnored() {
	if c != nil {
		c.ignored.Inc()
	}
}

// OperationsReissued counts operations that the target may have seen twice.
func (c *Controller) OperationsReissued(n int64) {
	if c != nil {
		add(c.reissued, n)
	}
}

// GangStarted records the start of a load level: the time between its first
// and its last member.
func (c *Controller) GangStarted(skew time.Duration) {
	if c != nil {
		c.skew.record(skew)
	}
}

// GangMembersLost counts agents lost from a load level.
func (c *Controller) GangMembersLost(n int) {
	if c != nil {
		add(c.membersLost, int64(n))
	}
}

// LeaseGeneration sets the generation of the controller's lease.
func (c *Controller) LeaseGeneration(generation uint64) {
	if c != nil {
		c.generation.Set(float64(generation))
	}
}

// LeaseRenewed counts a renewal of the controller's lease.
func (c *Controller) LeaseRenewed() {
	if c != nil {
		c.renewals.Inc()
	}
}

// Halted counts a halt; a class that is not in the list counts as other.
func (c *Controller) Halted(why Halt) {
	if c != nil {
		c.halts.WithLabelValues(oneOf(halts, string(why))).Inc()
	}
}

// Reconnects counts a connection to NATS that was made anew.
func (c *Controller) Reconnects() {
	if c != nil {
		c.reconnects.Inc()
	}
}

func (c *Controller) gatherer() prometheus.Gatherer {
	if c == nil {
		return nil
	}
	return c.registry
}

// add adds what is positive: a counter does not fall.
func add(c prometheus.Counter, n int64) {
	if n > 0 {
		c.Add(float64(n))
	}
}
