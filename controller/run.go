package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/dispatch"
	"ordeal/controller/guard"
	"ordeal/controller/lead"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/policy"
	"ordeal/controller/result"
	"ordeal/controller/roster"
	"ordeal/controller/spec"
	"ordeal/metrics/price"
	"ordeal/metrics/prom"
)

// Options of a run.
type Options struct {
	Spec   spec.Spec // validated
	Policy *policy.Policy
	Prices []*price.Table // the first that knows the model applies

	Pool       string // empty = the default pool
	Select     roster.Selector
	MinAgents  int           // to begin with; 0 = 1
	WaitAgents time.Duration // for them; 0 = 5 s
	By         string        // label to break the results down by
	LeaseTTL   time.Duration // 0 = wire.LeaseTTL
	StopWhen   []guard.Condition
	MaxCalls   int64   // of the whole fleet; 0 = no budget
	MaxCost    float64 // USD; 0 = no budget

	Bus      *bus.Bus
	Command  string   // scan, ci
	Words    []string // what the user wrote to run this, fit to be shown
	Version  string
	Holder   string           // who leads the run: host and process
	Meter    *prom.Controller // may be nil
	Observe  func(Event)      // nil = nobody watches; called from several goroutines
	Began    func(run string) // nil = nobody asks; told the id once the run is stored
	Warnings func(string)
	Level    func(result.LoadLevel) // told what became of each level of a search; nil = nobody asks
	Live     func(Live)             // told how a load goes, every period of it; nil = nobody watches
}

// Event is how far a run is.
type Event struct {
	Phase string
	Probe string
	Stage string
	Done  int64 // operations of the stage
	Total int64
	Errs  int64
}

// run is the state of one scan.
type run struct {
	opt      Options
	id       string
	started  time.Time
	active   time.Duration // by earlier controllers
	leader   *lead.Leader
	roster   *roster.Roster
	dispatch *dispatch.Dispatcher
	merger   merge.Merger
	watch    *watch
	fleet    map[string]roster.Member // agents met so far, by id
	earlier  earlier
	stop     context.CancelCauseFunc // ends the run

	survey    *wire.Survey
	choice    *plan.Choice
	preflight *wire.Preflight
	stages    []plan.Stage
	levels    []plan.Level // of a load test, with the stages
	knee      *result.Knee
	at        string // what is under way, for the message of a timeout

	reconnects uint64 // counted so far; owned by count
}

// earlier is what earlier controllers of the run have left.
type earlier struct {
	stored map[string]*wire.Result // final results by unit
	cut    map[string]int64        // unit → calls of results that were cut
	queued map[string]bool         // units that were queued or in hand
	after  uint64                  // place in the stream behind them
	gangs  []wire.GangRecord
	plan   string // digest of their plan
}

// Run scans. Once there is a run the document is never nil when err is nil,
// ErrInterrupted-like causes of ctx, a halt, a stop condition, a budget or a
// timeout: it then holds what was measured until then.
func Run(ctx context.Context, opt Options) (*result.Document, error) {
	r := newRun(opt, newID())
	if err := r.refuse(ctx); err != nil {
		return nil, err
	}
	leader, err := r.create(ctx)
	if err != nil {
		if r.roster != nil {
			r.roster.Close()
		}
		return nil, err
	}
	return r.lead(ctx, leader)
}

func newRun(opt Options, id string) *run {
	if opt.Pool == "" {
		opt.Pool = wire.DefaultPool
	}
	r := &run{opt: opt, id: id, started: time.Now(), at: "phase survey", fleet: map[string]roster.Member{}}
	r.merger.Run, r.merger.By, r.merger.Labels = id, opt.By, r.labels
	r.watch = newWatch(r)
	return r
}

// lead carries the run out under a leader and stores what came of it.
func (r *run) lead(ctx context.Context, leader *lead.Leader) (*result.Document, error) {
	r.leader = leader
	r.opt.Meter.RunStarted(r.id, r.opt.Command)
	r.opt.Meter.LeaseGeneration(leader.Generation())
	if r.opt.Began != nil {
		r.opt.Began(r.id)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(leader.Context(), func() { cancel(context.Cause(leader.Context())) })()
	r.stop = cancel
	doc, err := r.carryOut(ctx)
	r.conclude(ctx, doc, err)
	return doc, err
}

// carryOut measures and returns the document.
func (r *run) carryOut(ctx context.Context) (*result.Document, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.opt.Spec.ScanTimeout-r.active, errScanTimeout)
	defer cancel()
	defer r.close(ctx)
	if err := r.open(ctx); err != nil {
		return nil, r.explain(ctx, err)
	}
	err := r.explore(ctx)
	switch {
	case err == nil:
		if err = r.plan(ctx); err != nil {
			return nil, err
		}
		err = r.send(ctx)
		var spent *Stopped
		if cause := context.Cause(ctx); err == nil && errors.As(cause, &spent) { // with the last unit
			err = cause
		}
	case ctx.Err() == nil:
		return nil, err
	case r.survey == nil:
		r.survey = &wire.Survey{Name: r.opt.Spec.Target.URI} // stopped before it answered
	}
	cut := r.explain(ctx, err)
	if errors.Is(cut, bus.ErrFenced) {
		return nil, fmt.Errorf("run %s: %w; see ordeal runs show %s", r.id, cut, r.id)
	}
	r.meet()
	return r.document(cut), cut
}

// explore finds out what can be called.
func (r *run) explore(ctx context.Context) error {
	if r.opt.Spec.Load != nil {
		return r.discoverLoad(ctx)
	}
	return r.discover(ctx)
}

// plan makes the stages of a scan. Those of a load come as it goes on.
func (r *run) plan(ctx context.Context) error {
	if r.opt.Spec.Load != nil {
		return nil
	}
	r.stages = plan.Build(&r.opt.Spec, r.survey, r.choice, r.preflight)
	return r.samePlan(ctx)
}

// send runs the stages.
func (r *run) send(ctx context.Context) error {
	if r.opt.Spec.Load != nil {
		return r.load(ctx)
	}
	return r.execute(ctx)
}

// Target is the target as far as it is known without a survey, for refusals.
func Target(s *spec.Spec) result.Target {
	return result.Target{Kind: string(s.Target.Kind), URI: s.Target.URI, Name: s.Target.URI, Transport: string(s.Target.Transport), Tool: s.Tool}
}

var errScanTimeout = errors.New("the run took longer than its limit")

// agentWait is how long a run waits for its agents unless it is told otherwise.
const agentWait = 5 * time.Second

func (r *run) open(ctx context.Context) error {
	err := r.enroll(ctx)
	if err != nil {
		return err
	}
	if err := r.watch.follow(r); err != nil {
		return err
	}
	if r.dispatch, err = r.newDispatch(ctx); err != nil {
		return err
	}
	if err := r.gather(ctx); err != nil {
		return err
	}
	r.meet()
	return nil
}

func (r *run) newDispatch(ctx context.Context) (*dispatch.Dispatcher, error) {
	return dispatch.New(ctx, dispatch.Options{Bus: r.opt.Bus, Roster: r.roster, Run: r.id, Pool: r.opt.Pool, Select: r.opt.Select,
		Generation: r.leader.Generation(), Sure: r.leader.Sure, LeaseTTL: r.leaseTTL(), Stored: r.earlier.stored, After: r.earlier.after,
		Gangs: r.earlier.gangs, Cut: r.earlier.cut, Queued: r.earlier.queued, Inherited: r.leader.Inherited(), Gone: r.leader.AgentGone, Record: r.recordGang, Sent: r.watch.sent, Warn: r.warn, Meter: r.opt.Meter})
}

func (r *run) leaseTTL() time.Duration {
	if r.opt.LeaseTTL > 0 {
		return r.opt.LeaseTTL
	}
	return wire.LeaseTTL
}

// meet notes who is in the fleet, as agents come and go.
func (r *run) meet() {
	for _, m := range r.roster.All() {
		r.fleet[m.ID] = m
	}
}

// labels of an agent; one that was not met yet is looked for.
func (r *run) labels(agent string) map[string]string {
	m, ok := r.fleet[agent]
	if !ok {
		r.meet()
		m = r.fleet[agent]
	}
	return m.Labels
}

func (r *run) close(ctx context.Context) {
	r.watch.close()
	switch {
	case r.dispatch == nil:
	case errors.Is(context.Cause(ctx), bus.ErrFenced):
		r.dispatch.Abandon()
	default:
		_ = r.dispatch.Close() // the server is gone: its units end with wire.UnitTTL, its agents by their lease
	}
	if r.roster != nil {
		r.roster.Close()
	}
}

func (r *run) warn(text string) {
	if r.opt.Warnings != nil {
		r.opt.Warnings(text)
	}
}

// execute runs the planned stages in order.
func (r *run) execute(ctx context.Context) error {
	stopped := map[string]bool{}
	for i := range r.stages {
		st := &r.stages[i]
		if stopped[st.Probe] {
			continue
		}
		if err := r.stage(ctx, st, nil); err != nil {
			return err
		}
		stopped[st.Probe] = plan.Stop(st, r.merger.Summary().Stage(st.Name))
	}
	return nil
}

// explain gives the reason for which a context ended instead of what its end
// broke, and names what was under way when a scan ran out of time.
func (r *run) explain(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case err == nil || cause == nil:
		return err
	case errors.Is(cause, errScanTimeout):
		return &Stopped{Budget: true, Reason: fmt.Sprintf("the run exceeded --%s %v in %s; raise it, or ask for less", r.opt.Spec.TimeoutFlag(), r.opt.Spec.ScanTimeout, r.at)}
	default:
		return cause
	}
}
