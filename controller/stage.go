package controller

import (
	"context"
	"fmt"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
)

// stage dispatches one stage and merges what comes back, as it comes. each,
// when set, sees the final results that counted.
func (r *run) stage(ctx context.Context, st *plan.Stage, each func(*wire.Result)) error {
	r.at = fmt.Sprintf("phase %s, probe %s", st.Phase, st.Probe)
	r.watch.begin(st)
	r.note(st.Name, 0, len(st.Units))
	begun := time.Now()
	sink := &sink{run: r, stage: st, each: each}
	err := r.dispatch.Stage(ctx, st, sink)
	if sink.merged == nil {
		sink.Planned(st.Units) // nobody took it: all of it is missing
	}
	sink.merged.Took(time.Since(begun))
	return err
}

// sink merges the results of one stage.
type sink struct {
	run    *run
	stage  *plan.Stage
	merged *merge.Stage
	each   func(*wire.Result)
	done   int
	units  int
}

func (s *sink) Planned(units []wire.Unit) {
	planned := make([]merge.Planned, len(units))
	for i := range units {
		planned[i] = merge.Planned{Unit: units[i].ID, Operations: plan.Operations(&units[i])}
	}
	s.merged, s.units = s.run.merger.Stage(s.stage.Name, s.stage.Probe, s.stage.Level, planned), len(units)
}

func (s *sink) Add(res *wire.Result) {
	s.run.watch.result(res)
	if !s.run.merger.Add(res) {
		s.run.opt.Meter.ResultIgnored()
		return
	}
	s.done++
	if res.Released != "" && res.Released != wire.ByLease {
		s.run.stop(&Stopped{Reason: res.Released, Budget: true})
	}
	s.run.note(s.stage.Name, s.done, s.units)
	if s.each != nil {
		s.each(res)
	}
}

func (s *sink) Lost(agent string) { s.run.merger.Lost(agent) }

func (s *sink) Gang(g merge.Gang) { s.run.merger.Gang(s.stage.Name, g) }

// note keeps for onlookers how far the run is.
func (r *run) note(stage string, done, units int) {
	r.leader.Note(func(rec *wire.Run) { rec.Stage, rec.Done, rec.Units = stage, done, units })
}
