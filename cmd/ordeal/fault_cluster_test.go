package main

import (
	"fmt"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/testdata/fleettest"
)

// A cluster of three that loses the node which leads the results, the units or
// the runs costs time only.
func TestFaultClusterLosesNode(t *testing.T) {
	streams := []string{wire.ResultStream, wire.UnitStream, "KV_" + wire.RunBucket}
	for moment := range ofFaults(1, 6) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) {
			t.Parallel()
			r := draw("cluster loses a node", moment)
			nodes := fleettest.StartCluster(t, 3)
			w := worldAt(t, fleettest.ClusterURL(nodes), "a", "b")
			scan := w.scan(mockScanArgs...)
			stream := streams[moment%len(streams)]
			results, later := 1+r.IntN(80), upTo(r, 30*time.Millisecond)
			if err := w.spy.awaitResults(within(t, faultWait), results); err != nil {
				t.Fatal(err)
			}
			node := fleettest.Leader(t, nodes, stream)
			time.Sleep(later)
			node.Kill()
			doc := w.report(scan)
			row{"cluster of 3 loses a node", fmt.Sprintf("%d results + %v, leader of %s", results, later.Round(time.Millisecond), stream),
				fmt.Sprintf("%d operations reissued, %d results ignored", doc.Run.Reissued, doc.Fleet.Ignored), sameAsWhole(t, mockScanArgs, doc)}.note(t)
		})
	}
}
