package controller

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/dispatch"
	"ordeal/controller/guard"
	"ordeal/controller/lead"
	"ordeal/controller/policy"
	"ordeal/controller/report"
	"ordeal/controller/result"
	"ordeal/controller/roster"
	"ordeal/controller/spec"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics/price"
	"ordeal/metrics/prom"
)

// order is what a second controller needs to carry a run on: all of Options that
// decides what is done, with secrets as references.
type order struct {
	Spec      spec.Spec         `json:"spec"`
	Target    wire.Target       `json:"target"`
	MilliRate int64             `json:"milli_rate"`
	FaultPPB  int64             `json:"fault_ppb"`
	Policy    *policy.Policy    `json:"policy"`
	Prices    []*price.Table    `json:"prices"`
	Pool      string            `json:"pool"`
	Select    string            `json:"select"`
	MinAgents int               `json:"min_agents"`
	By        string            `json:"by"`
	LeaseTTL  time.Duration     `json:"lease_ttl"`
	StopWhen  []guard.Condition `json:"stop_when"`
	MaxCalls  int64             `json:"max_calls"`
	MaxCost   float64           `json:"max_cost"`
}

func (o *Options) order() (json.RawMessage, error) {
	return json.Marshal(order{Spec: o.Spec, Target: o.Spec.Target, MilliRate: o.Spec.MilliRate, FaultPPB: o.Spec.FaultRatePPB, Policy: o.Policy,
		Prices: o.Prices, Pool: o.Pool, Select: o.Select.String(), MinAgents: o.MinAgents, By: o.By, LeaseTTL: o.LeaseTTL,
		StopWhen: o.StopWhen, MaxCalls: o.MaxCalls, MaxCost: o.MaxCost})
}

// options are those that an order was made of.
func (o *order) options() (Options, error) {
	opt := Options{Spec: o.Spec, Policy: o.Policy, Prices: o.Prices, Pool: o.Pool, MinAgents: o.MinAgents, By: o.By,
		LeaseTTL: o.LeaseTTL, StopWhen: o.StopWhen, MaxCalls: o.MaxCalls, MaxCost: o.MaxCost}
	opt.Spec.Target, opt.Spec.MilliRate, opt.Spec.FaultRatePPB = o.Target, o.MilliRate, o.FaultPPB
	if o.Select == "" {
		return opt, nil
	}
	var err error
	opt.Select, err = roster.ParseSelector(strings.Split(o.Select, ","))
	return opt, err
}

// create stores a new run and leads it.
func (r *run) create(ctx context.Context) (*lead.Leader, error) {
	o, err := r.opt.order()
	if err != nil {
		return nil, fmt.Errorf("encode run: %w", err)
	}
	return lead.Create(ctx, r.leadOptions(wire.Run{ID: r.id, Started: r.started.UTC(), Command: r.opt.Command, Target: r.opt.Spec.Target.URI,
		Words: r.opt.Words, Version: r.opt.Version, Order: o}))
}

func (r *run) leadOptions(rec wire.Run) lead.Options {
	return lead.Options{Bus: r.opt.Bus, Record: rec, TTL: r.leaseTTL(), Holder: r.opt.Holder, MaxCalls: r.opt.MaxCalls,
		Rate: r.rate, Unpaced: r.opt.Spec.Load != nil, Log: r.warn}
}

// rate is what the fleet sends at the moment, calls per second.
func (r *run) rate() float64 {
	return r.watch.rate()
}

// ResumeOptions say which run to carry on, and who does.
type ResumeOptions struct {
	Bus      *bus.Bus
	Run      string
	Version  string
	Holder   string
	Meter    *prom.Controller
	Observe  func(Event)
	Warnings func(string)
}

// Resume carries on a run whose controller is gone: what has a result is not
// done again.
func Resume(ctx context.Context, opt ResumeOptions) (*result.Document, error) {
	rec, _, err := opt.Bus.Run(ctx, opt.Run)
	if err != nil {
		return nil, err
	}
	r, err := opt.run(rec)
	if err != nil {
		return nil, err
	}
	leader, rec, err := lead.Take(ctx, r.id, r.leadOptions(*rec))
	if err != nil {
		return nil, err
	}
	r.started, r.active = rec.Started, rec.Active
	r.earlier = earlier{stored: map[string]*wire.Result{}, cut: map[string]int64{}, gangs: rec.Gangs, plan: rec.Plan}
	// The queue is read before the results: a unit leaves it once its result is
	// stored, so one that is in neither was never queued.
	if r.earlier.queued, err = opt.Bus.QueuedUnits(ctx, wire.QueueName(r.opt.Pool, schedule.Digest()), r.id); err != nil {
		leader.Close()
		return nil, err
	}
	r.earlier.after, err = opt.Bus.StoredResults(ctx, r.id, func(res *wire.Result) {
		switch {
		case res.Final && res.Partial:
			r.earlier.cut[res.Unit] += res.Calls
			r.merger.Ignore(1)
		case res.Final && r.earlier.stored[res.Unit] == nil:
			r.earlier.stored[res.Unit] = res
		default:
			r.merger.Ignore(1)
		}
	})
	if err != nil {
		leader.Close()
		return nil, err
	}
	return r.lead(ctx, leader)
}

func (opt *ResumeOptions) run(rec *wire.Run) (*run, error) {
	var o order
	if err := json.Unmarshal(rec.Order, &o); err != nil {
		return nil, fmt.Errorf("run %s cannot be read: %w; resume it with ordeal %s, which began it", rec.ID, err, rec.Version)
	}
	full, err := o.options()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", rec.ID, err)
	}
	full.Bus, full.Command, full.Words, full.Version, full.Holder = opt.Bus, rec.Command, rec.Words, opt.Version, opt.Holder
	full.Meter, full.Observe, full.Warnings = opt.Meter, opt.Observe, opt.Warnings
	return newRun(full, rec.ID), nil
}

// samePlan keeps the digest of the plan with the run, and refuses to go on by
// another one.
func (r *run) samePlan(ctx context.Context) error {
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	for i := range r.stages {
		if err := enc.Encode(r.stages[i]); err != nil {
			return fmt.Errorf("encode stage %s: %w", r.stages[i].Name, err)
		}
	}
	digest := hex.EncodeToString(sum.Sum(nil)[:16])
	if r.earlier.plan != "" && r.earlier.plan != digest {
		return fmt.Errorf("run %s was planned otherwise (digest %.8s, this build's %.8s): resume it with the release that began it", r.id, r.earlier.plan, digest)
	}
	return r.leader.Update(ctx, func(rec *wire.Run) { rec.Plan = digest })
}

// recordGang keeps an attempt at a gang stage, in place of an earlier record of
// the same.
func (r *run) recordGang(ctx context.Context, g wire.GangRecord) error {
	return r.leader.Update(ctx, func(rec *wire.Run) {
		for i := range rec.Gangs {
			if rec.Gangs[i].Gang == g.Gang {
				rec.Gangs[i] = g
				return
			}
		}
		rec.Gangs = append(rec.Gangs, g)
	})
}

// conclude stores how the run ended; a controller that was replaced stores
// nothing.
func (r *run) conclude(ctx context.Context, doc *result.Document, cut error) {
	defer r.leader.Close()
	if r.goesOn(doc, cut) {
		return
	}
	end := lead.End{State: wire.Finished}
	switch {
	case doc == nil:
		end.State, end.Reason = wire.Failed, cut.Error()
	case cut != nil:
		end.State, end.Reason = wire.Stopped, cut.Error()
	}
	if doc != nil {
		end.Verdict = report.Verdict(doc)
		end.Document = asJSON(doc)
	}
	r.opt.Meter.RunState(prom.State(end.State))
	r.opt.Meter.OperationsReissued(r.merger.Summary().Reissued)
	if class := haltClass(cut); class != "" {
		r.opt.Meter.Halted(class)
	}
	if err := r.leader.Finish(ctx, end); err != nil {
		r.warn(err.Error()) // the caller has the document
	}
}

// goesOn reports whether the run stays as it is: another controller leads it, its
// results found no room, or a resumption could not begin.
func (r *run) goesOn(doc *result.Document, cut error) bool {
	var full *dispatch.NoRoom
	var suspended *dispatch.Suspended
	return errors.Is(cut, bus.ErrFenced) || errors.As(cut, &full) || errors.As(cut, &suspended) || doc == nil && r.earlier.stored != nil
}

// haltClass is the class of what ended a run early; empty when nothing did.
func haltClass(cut error) prom.Halt {
	var stopped *Stopped
	var halted *lead.Halted
	switch {
	case cut == nil:
		return ""
	case errors.As(cut, &stopped) && !stopped.Budget:
		return prom.HaltCondition
	case errors.As(cut, &stopped):
		return prom.HaltBudget
	case errors.As(cut, &halted):
		return prom.HaltOperator
	case errors.Is(cut, bus.ErrFenced):
		return prom.HaltLease
	}
	return prom.HaltInterrupt
}

func newID() string {
	var b [5]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(fmt.Sprintf("controller: no randomness for a run id: %v", err))
	}
	return time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}
