package main

import (
	"testing"

	"ordeal/agent/wire"
	"ordeal/testdata/fleettest"
)

// A cluster of three that loses the node which leads the results, the units or
// the runs costs time only.
func clusterLosesNode(t *testing.T) {
	streams := []string{wire.ResultStream, wire.UnitStream, "KV_" + wire.RunBucket}
	times(t, ofFaults(1, 6), func(t *testing.T, moment int) {
		nodes := fleettest.StartCluster(t, 3)
		w := worldAt(t, fleettest.ClusterURL(nodes), "a", "b")
		scan := w.scan(mockScanArgs...)
		stream := streams[moment%len(streams)]
		when := w.afterResults(draw("cluster loses a node", moment), 80)
		fleettest.Leader(t, nodes, stream).Kill()
		doc := w.report(scan)
		row{"cluster of 3 loses a node", when + ", leader of " + stream,
			denominatorsOf(doc), sameAsWhole(t, mockScanArgs, doc)}.note(t)
	})
}
