package controller

import (
	"context"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/measure"
	"ordeal/controller/plan"
	"ordeal/controller/result"
)

// load sends the load that was asked for: one level, or those of a search.
func (r *run) load(ctx context.Context) error {
	if r.opt.Spec.Load.Knee == nil {
		_, err := r.level(ctx, plan.Level{})
		return err
	}
	return r.search(ctx)
}

// level sends one level and says what became of it.
func (r *run) level(ctx context.Context, l plan.Level) (result.LoadLevel, error) {
	st := plan.Load(&r.opt.Spec, r.choice, r.survey.Virtual, r.latency(), l)
	r.stages = append(r.stages, st)
	r.levels = append(r.levels, l)
	if err := r.stage(ctx, &st, nil); err != nil {
		return result.LoadLevel{}, err
	}
	merged := r.merger.Summary().Stage(st.Name)
	if merged.Tally == nil && len(merged.Failures) > 0 {
		return result.LoadLevel{}, &Unmeasurable{merged.Failures[0]}
	}
	lv, _ := measure.LoadLevel(&r.opt.Spec, merged, l)
	return lv, ctx.Err()
}

// latency of the preflight call.
func (r *run) latency() time.Duration {
	if r.preflight == nil {
		return 0
	}
	return time.Duration(r.preflight.LatencyUS) * time.Microsecond
}

// search looks for the highest arrival rate that meets the SLO: doubled until one
// does not, then halfway between the highest that did and the lowest that did not,
// until these are as close as asked; the rate found is then confirmed by longer
// runs. One that fails on confirmation counts as a rate that did not.
func (r *run) search(ctx context.Context) error {
	k := newSearch(&r.opt.Spec)
	r.knee = &k.knee
	for {
		l, more := k.next()
		if !more {
			return nil
		}
		lv, err := r.level(ctx, l)
		if err != nil {
			k.knee.Ended = "the run ended early"
			return err
		}
		k.see(l, &lv)
		r.warnLevel(&lv)
	}
}

// warnLevel tells onlookers how the search goes on.
func (r *run) warnLevel(lv *result.LoadLevel) {
	if r.opt.Level != nil {
		r.opt.Level(*lv)
	}
}

// discoverLoad connects, chooses what to call, and tries it once.
func (r *run) discoverLoad(ctx context.Context) error {
	s := &r.opt.Spec
	survey, err := r.only(ctx, plan.Survey(s))
	if err != nil {
		return err
	}
	r.survey = survey.Survey
	candidates, err := plan.ChooseLoad(s, r.survey)
	if err != nil {
		return err
	}
	r.choice = candidates[0]
	for _, w := range r.choice.Warnings {
		r.warn(w)
	}
	if s.Load.Workload == nil {
		return r.try(ctx, candidates)
	}
	tried, err := r.only(ctx, plan.LoadPreflight(s, r.choice))
	if err != nil {
		return err
	}
	r.preflight = preflightOfWorkload(tried)
	if t := tried.Tally; t != nil && t.Measured() > 0 && t.Successes() == 0 {
		r.warn("the first operation of the workload failed: " + firstText(t.Errors))
	}
	return nil
}

// preflightOfWorkload takes the time of one operation for that of a call.
func preflightOfWorkload(res *wire.Result) *wire.Preflight {
	p := &wire.Preflight{}
	if t := res.Tally; t != nil {
		p.LatencyUS = t.Service.Quantile(500)
		p.Delivered = t.Delivered > 0
	}
	return p
}

func firstText(texts map[string]int64) string {
	first := ""
	for text := range texts {
		if first == "" || text < first {
			first = text
		}
	}
	return first
}
