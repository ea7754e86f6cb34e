package merge

import (
	"fmt"
	"runtime"
	"testing"

	"ordeal/agent/wire"
)

// TestMemoryIsTheBookOfUnits plans a million units: the book of them stays below
// 200 bytes each, ids included, and adding their results takes no more.
func TestMemoryIsTheBookOfUnits(t *testing.T) {
	const units = 1_000_000
	m := Merger{By: "zone"}
	before := heap()
	planned := make([]Planned, units)
	for i := range planned {
		planned[i] = Planned{fmt.Sprintf("s00-%07d", i), 1}
	}
	st := m.Stage("s", "latency", 0, planned)
	opened := heap()
	perUnit := (opened - before) / units
	if t.Logf("%d bytes for each unit, its id and its plan included", perUnit); perUnit > 200 {
		t.Errorf("%d bytes for each unit", perUnit)
	}
	template := timed("", "", 3, "")
	for i := range planned {
		r := *template
		r.Unit, r.Agent = planned[i].Unit, agents[i%len(agents)]
		if i%5 == 0 {
			r.Failure = &wire.Failure{Class: "harness", Message: fmt.Sprint("unit ", i, " failed")}
		}
		m.Add(&r)
	}
	if grown := heap() - opened; grown > 4<<20 {
		t.Errorf("a million results take another %d KiB", grown>>10)
	}
	if st.Done != units || st.Tally.Latency.N() != 3*units || m.Summary().Fleet[0].Units != units/int64(len(agents)) {
		t.Errorf("%d units, %d times", st.Done, st.Tally.Latency.N())
	}
	runtime.KeepAlive(planned)
}

var agents = []string{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
