package controller

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/dispatch"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/policy"
	"ordeal/controller/result"
	"ordeal/controller/spec"
	"ordeal/metrics/price"
)

// Options of a run.
type Options struct {
	Spec     spec.Spec // validated
	Policy   *policy.Policy
	Prices   []*price.Table // the first that knows the model applies
	Bus      *bus.Bus
	Pool     string   // empty = the default pool
	Command  string   // scan, ci
	Words    []string // what the user wrote to run this, fit to be shown
	Version  string
	Observe  func(Event) // nil = nobody watches; called from several goroutines
	Warnings func(string)
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
	dispatch *dispatch.Dispatcher
	merger   merge.Merger
	watch    *watch
	fleet    map[string]wire.Hello // agents met so far, by id

	survey    *wire.Survey
	choice    *plan.Choice
	preflight *wire.Preflight
	stages    []plan.Stage
	at        string // what is under way, for the message of a timeout
}

// Run scans. The document is never nil when err is nil, ErrInterrupted-like
// causes of ctx or a timeout: it then holds what was measured until then.
func Run(ctx context.Context, opt Options) (*result.Document, error) {
	r := &run{opt: opt, id: newID(), started: time.Now(), at: "phase survey", fleet: map[string]wire.Hello{}}
	r.merger.Run = r.id
	ctx, cancel := context.WithTimeoutCause(ctx, opt.Spec.ScanTimeout, errScanTimeout)
	defer cancel()
	defer r.close()
	if err := r.open(ctx); err != nil {
		return nil, r.explain(ctx, err)
	}
	err := r.discover(ctx)
	switch {
	case err == nil:
		r.stages = plan.Build(&opt.Spec, r.survey, r.choice, r.preflight)
		err = r.execute(ctx)
	case ctx.Err() == nil:
		return nil, err
	case r.survey == nil:
		r.survey = &wire.Survey{Name: opt.Spec.Target.URI} // stopped before it answered
	}
	cut := r.explain(ctx, err)
	r.meet(ctx)
	return r.document(cut), cut
}

// Target is the target as far as it is known without a survey, for refusals.
func Target(s *spec.Spec) result.Target {
	return result.Target{Kind: string(s.Target.Kind), URI: s.Target.URI, Name: s.Target.URI, Transport: string(s.Target.Transport), Tool: s.Tool}
}

var errScanTimeout = errors.New("the scan took longer than --scan-timeout")

func (r *run) open(ctx context.Context) error {
	if r.opt.Pool == "" {
		r.opt.Pool = wire.DefaultPool
	}
	d, err := dispatch.New(ctx, r.opt.Bus, r.id, r.opt.Pool)
	if err != nil {
		return err
	}
	r.dispatch = d
	if r.watch, err = newWatch(r.opt.Bus, r.id, r.opt.Observe); err != nil {
		return err
	}
	if err := d.WaitAgents(ctx, agentWait); errors.Is(err, dispatch.ErrNoAgents) {
		return fmt.Errorf("%w after %v; start one with ordeal-agent --nats URL", err, agentWait)
	} else if err != nil {
		return err
	}
	r.meet(ctx)
	return nil
}

// meet notes who works for the run: it is asked at both ends, as agents come and
// go. What is not answered is missing from the document, no more.
func (r *run) meet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	fleet, err := r.opt.Bus.Agents(ctx)
	if err != nil {
		return
	}
	for _, a := range fleet {
		r.fleet[a.ID] = a
	}
}

// agentWait is how long a run waits for the first agent of its pool.
const agentWait = 5 * time.Second

func (r *run) close() {
	if r.watch != nil {
		r.watch.close()
	}
	if r.dispatch != nil {
		_ = r.dispatch.Close() // the server is gone: its units end with wire.UnitTTL
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
		if _, err := r.stage(ctx, st); err != nil {
			return err
		}
		stopped[st.Probe] = plan.Stop(st, r.merger.Summary().Stage(st.Name))
	}
	return nil
}

// stage dispatches one stage and merges what came back, also when it was cut.
func (r *run) stage(ctx context.Context, st *plan.Stage) ([]*wire.Result, error) {
	r.at = fmt.Sprintf("phase %s, probe %s", st.Phase, st.Probe)
	r.watch.begin(st)
	begun := time.Now()
	results, err := r.dispatch.Stage(ctx, st)
	merged := r.merger.Stage(st.Name, st.Probe, st.Level, planned(st))
	for _, res := range results {
		r.merger.Add(res)
	}
	merged.Took(time.Since(begun))
	return results, err
}

func planned(st *plan.Stage) []merge.Planned {
	units := make([]merge.Planned, len(st.Units))
	for i := range st.Units {
		units[i] = merge.Planned{Unit: st.Units[i].ID, Operations: plan.Operations(&st.Units[i])}
	}
	return units
}

// explain gives the reason for which a context ended instead of what its end
// broke, and names what was under way when a scan ran out of time.
func (r *run) explain(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case err == nil || cause == nil:
		return err
	case errors.Is(cause, errScanTimeout):
		return fmt.Errorf("the scan exceeded --scan-timeout %v in %s; raise it, or lower --requests or --timeout", r.opt.Spec.ScanTimeout, r.at)
	default:
		return cause
	}
}

func newID() string {
	var b [5]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(fmt.Sprintf("controller: no randomness for a run id: %v", err))
	}
	return time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}
