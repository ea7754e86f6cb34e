package probe

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics"
)

// Env is what a unit is worked with.
type Env struct {
	Target target.Target
	// Ready, when set, is called by a load once its sessions are open and its
	// warm-up is done; the measured part begins when it returns. Its error
	// leaves the unit unworked.
	Ready func(context.Context) error
	// Leave and Quota bind the unit to its run and to the rest of the fleet; nil
	// for a unit that nothing holds back.
	Leave Leave
	Quota Quota
	// Watch, when set, is given a gauge of a unit on a real target: the calls that are
	// open, and the arrivals dropped so far. It may be read until Run returns.
	Watch func(gauge func() (open, dropped int64))

	crash     *crash
	timers    bool          // pace by Go timers: the clock of a test
	metered   func(*meter)  // a test looks on; nil: nobody does
	occupancy *occupancy    // of a real target
	dropped   *atomic.Int64 // arrivals, on a real target
	plain     target.Target // as it was given, with all it can do
}

// Progress is told now and then how many operations of a unit are done, how many
// of them failed, and what was observed since it was told last; seen is nil for
// a kind of unit that keeps no tally, and not to be kept. It is called from one
// goroutine at a time, and its callers have load to make meanwhile.
type Progress func(done, errors int64, seen *metrics.Tally)

// Run works a unit until it is done or ctx ends; what was observed until then
// is in the result either way. progress may be nil. The caller fills in
// incarnation, sequence and agent. A panic, also one of a goroutine that the
// unit has started, is a failure of the unit.
func Run(ctx context.Context, env Env, u *wire.Unit, progress Progress) *wire.Result {
	res := &wire.Result{V: wire.Version, Run: u.Run, Stage: u.Stage, Unit: u.ID, Final: true}
	if progress == nil {
		progress = func(int64, int64, *metrics.Tally) {}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	env.crash = &crash{stop: stop}
	told := env.Target
	env.plain = told
	if !env.Target.Virtual() {
		env.occupancy, env.dropped = &occupancy{}, &atomic.Int64{}
		if env.Watch != nil {
			env.Watch(func() (open, dropped int64) { return env.occupancy.n.Load(), env.dropped.Load() })
		}
		env.Target = env.occupancy.observe(env.Target, env.Leave)
	}
	seen := notesOf(told)
	start := time.Now()
	env.crash.guard(func() {
		if err := execute(ctx, &env, u, res, progress); err != nil {
			res.Failure = target.Explain(err)
		}
	})
	if f := env.crash.seen(); f != nil {
		res.Failure = f
	}
	res.Elapsed = time.Since(start)
	if res.Tally != nil {
		for _, note := range notesOf(told) {
			if !slices.Contains(seen, note) {
				res.Tally.Note(note)
			}
		}
	}
	if env.occupancy != nil {
		res.Busy = env.occupancy.spent()
	}
	return res
}

func execute(ctx context.Context, env *Env, u *wire.Unit, res *wire.Result, progress Progress) error {
	if err := checkUnit(u); err != nil {
		return err
	}
	switch u.Kind {
	case wire.SurveyUnit:
		return survey(ctx, env, res)
	case wire.PreflightUnit:
		return preflight(ctx, env, u, res)
	case wire.OracleUnit:
		return oracle(ctx, env, u, res)
	case wire.LoadUnit:
		return runLoad(ctx, env, u, res, progress)
	case wire.RecoveryUnit:
		return recovery(ctx, env, u, res, progress)
	case wire.ContractUnit:
		return contract(ctx, env, u, res, progress)
	}
	return nil
}

// notesOf are the protocol findings that a target has made so far beside its
// calls: late, repeated and unknown replies, noise.
func notesOf(t target.Target) []string {
	if noted, ok := t.(interface{ Notes() []string }); ok {
		return noted.Notes()
	}
	return nil
}

// checkUnit refuses a unit that an agent of this version cannot work.
func checkUnit(u *wire.Unit) error {
	has := map[wire.UnitKind]bool{
		wire.SurveyUnit: true, wire.PreflightUnit: true, wire.OracleUnit: u.Oracle != nil, wire.LoadUnit: u.Load != nil,
		wire.RecoveryUnit: u.Recovery != nil, wire.ContractUnit: u.Contract != nil,
	}
	complete, known := has[u.Kind]
	switch {
	case !known:
		return fmt.Errorf("probe: unit %s: unknown kind %q; this agent is older than its controller", u.ID, u.Kind)
	case !complete:
		return fmt.Errorf("probe: unit %s: kind %s without its parameters", u.ID, u.Kind)
	case u.Ops.To < u.Ops.From:
		return fmt.Errorf("probe: unit %s: operations %d to %d run backwards", u.ID, u.Ops.From, u.Ops.To)
	}
	return nil
}

// Failer is an error of a target that knows why a unit cannot be worked.
type Failer interface {
	error
	Failure() *wire.Failure
}

// faultSchedule builds the schedule of a unit; nil for a clean one.
func faultSchedule(f *wire.Faults) (*schedule.Schedule, error) {
	if f == nil || f.RatePPB <= 0 {
		return nil, nil
	}
	if f.RatePPB > int64(schedule.One) {
		return nil, fmt.Errorf("probe: fault rate of %d parts per %d is above 1", f.RatePPB, schedule.One)
	}
	rule := schedule.Rule{ID: f.Rule, RatePPB: schedule.PPB(f.RatePPB)}
	for _, name := range f.Kinds {
		kind, err := schedule.ParseKind(name)
		if err != nil {
			return nil, fmt.Errorf("probe: %w", err)
		}
		rule.Kinds = append(rule.Kinds, kind)
	}
	s, err := schedule.Build(f.Seed, []schedule.Rule{rule})
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	return s, nil
}

// newClock is a clock of the kind the target lives by.
func (env *Env) newClock() faultproxy.Clock {
	if env.Target.Virtual() {
		return &faultproxy.VirtualClock{}
	}
	if env.occupancy != nil {
		return occupiedClock{faultproxy.NewRealClock(), env.occupancy}
	}
	return faultproxy.NewRealClock()
}
