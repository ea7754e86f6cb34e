package agent

import (
	"sync/atomic"

	"ordeal/metrics/prom"
)

// gauges tells Prometheus how the leases of all runs fare.
type gauges struct {
	metrics *prom.Agent // nil = nobody
	leases  atomic.Int64
}

func (g *gauges) held(change int) { g.metrics.Lease(int(g.leases.Add(int64(change)))) }
func (g *gauges) expired()        { g.metrics.LeaseExpired() }
func (g *gauges) refused()        { g.metrics.LeaseRefused() }
