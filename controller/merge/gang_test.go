package merge

import (
	"testing"
	"time"

	"ordeal/agent/wire"
)

func member(id string, offset, bound time.Duration, due, at int64) GangMember {
	return GangMember{ID: id, Offset: offset, Bound: bound, Start: &wire.Start{Due: due, At: at}}
}

func TestSkew(t *testing.T) {
	const ms = int64(time.Millisecond)
	tests := []struct {
		name        string
		agents      []GangMember
		skew, bound time.Duration
		known       bool
	}{
		{"Nobody", nil, 0, 0, false},
		{"Alone", []GangMember{member("a", 0, time.Millisecond, 0, 5)}, 0, 0, false},
		// b's clock is 1 s ahead: it began 2 ms after a on the controller's.
		{"OffsetsTakenOut", []GangMember{member("a", 0, 100*time.Microsecond, 0, 0), member("b", time.Second, 300*time.Microsecond, 1000*ms, 1002*ms),
			member("c", -time.Second, 200*time.Microsecond, -1000*ms, -999*ms)}, 2 * time.Millisecond, 500 * time.Microsecond, true},
		{"UnknownClockLeftOut", []GangMember{member("a", 0, 100, 0, 0), member("b", 0, 0, 0, 9e9), member("c", 0, 200, 0, 50)}, 50, 300, true},
		{"NeverStarted", []GangMember{{ID: "a", Bound: 9}, member("b", 0, 9, 0, 1)}, 0, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := Gang{Agents: tt.agents}
			skew, bound, known := g.Skew()
			if skew != tt.skew || bound != tt.bound || known != tt.known {
				t.Errorf("skew %v ± %v, %v; want %v ± %v, %v", skew, bound, known, tt.skew, tt.bound, tt.known)
			}
		})
	}
}

func TestLate(t *testing.T) {
	g := Gang{Agents: []GangMember{member("a", 0, 1, 100, 90), {ID: "b"}, member("c", 0, 1, 100, 95)}}
	if late, ok := g.Late(); late != -5 || !ok {
		t.Errorf("late by %v, %v, want -5 ns: all were early", late, ok)
	}
	if _, ok := (&Gang{Agents: []GangMember{{ID: "b"}}}).Late(); ok {
		t.Error("lateness of nobody")
	}
}

func TestGangIsRecorded(t *testing.T) {
	var m Merger
	m.Stage("concurrency-4", "concurrency", 4, []Planned{{"old", 1}})
	st := m.Stage("concurrency-4", "concurrency", 4, []Planned{{"u0", 9}, {"u1", 9}})
	m.Add(&wire.Result{Stage: "concurrency-4", Unit: "u0", Incarnation: 1, Final: true, Agent: "a", Calls: 9})
	m.Gang("concurrency-4", Gang{Name: "g2", Attempts: 2, Planned: 4, Achieved: 2, Degraded: true, Repeated: 7, Lost: []string{"b", "c"},
		Agents: []GangMember{member("a", time.Millisecond, 30, 0, 0)}})
	m.Gang("nothing", Gang{Repeated: 3})
	m.Lost("d")
	s := m.Summary()
	if !st.Degraded() || st.Gang.Name != "g2" || s.Stages[0].Gang != nil {
		t.Errorf("gang %+v of the stage opened last", st.Gang)
	}
	if s.Reissued != 10 {
		t.Errorf("reissued %d, want the 10 of abandoned attempts", s.Reissued)
	}
	var lost []string
	for _, a := range s.Fleet {
		if a.Lost {
			lost = append(lost, a.ID)
		}
		if a.ID == "a" && (a.Offset != time.Millisecond || a.Bound != 30 || a.Units != 1) {
			t.Errorf("agent a: %+v", a)
		}
	}
	if len(lost) != 3 || len(s.Fleet) != 4 {
		t.Errorf("fleet %+v, lost %v", s.Fleet, lost)
	}
}
