package measure

import (
	"fmt"

	"ordeal/controller/merge"
	"ordeal/controller/result"
	"ordeal/metrics"
)

// requests counts the attempts of a tally as reliability sees them: when the
// target enforces a quota, attempts it refused for that are load it never took.
type requests struct {
	*metrics.Tally
	quota bool
}

// reliabilityOf reads a baseline tally. A quota is seen when an answer said so: a
// status, a header, a structured error, the text of a tool error. The random
// refusals of a mock are none.
func reliabilityOf(t *metrics.Tally) requests {
	return requests{t, len(t.Quota.Seen) > 0}
}

func (r requests) limited() int64 { return r.Outcomes[metrics.RateLimited] }

// total and failed are denominator and numerator of error_rate.
func (r requests) total() int64 {
	if r.quota {
		return r.Measured() - r.limited()
	}
	return r.Measured()
}

func (r requests) failed() int64 { return r.total() - r.Successes() }

// forSuccesses is the remedy that brings so many successes with a time, at the
// share of these seen.
func (r requests) forSuccesses(want int64) string {
	have := max(1, r.Latency.N())
	return fmt.Sprintf("--requests %d", (want*r.Measured()+have-1)/have)
}

// requests records the counts and error rates of a baseline stage, with the
// caveats that follow from them.
func (s *sheet) requests(r requests) {
	n := r.Measured()
	s.count("requests", n, n)
	s.count("successes", r.Successes(), n)
	s.count("failures", r.Failures(), n)
	s.count("unmeasured", r.Calls()-n, r.Calls())
	s.count("timeouts", r.Outcomes[metrics.Timeout], n)
	s.count("rate_limited", r.limited(), n)
	s.count("decided_by_text", r.ByText, n)
	s.rate("error_rate", r.failed(), r.total())
	s.rate("error_rate_raw", r.Failures(), n)
	s.fact("errors_by_kind", copied(r.Kinds), r.Failures())
	s.fact("outcomes", r.Outcomes.Named(), r.Calls())
	switch {
	case r.total() == 0:
		s.caveat(onlyRateLimited(n))
	case r.failed() == 0:
		s.caveat(zeroFailures(r.total()))
	}
	if r.quota && r.limited() > 0 {
		s.caveat(rateLimitedLeftOut(r.limited(), n))
	}
	if r.ByText > 0 {
		s.caveat(decidedByText(r.ByText, n))
	}
}

// quota reports a detected limit on calls as what it is: capacity somebody set,
// not a failure under load.
func (s *sheet) quota(r requests, affected ...string) {
	n := r.Calls()
	s.fact("quota_detected", r.quota, n)
	q := r.Quota
	s.missing("count", n, "quota_limit")
	s.missing("s", n, "quota_window_s", "quota_retry_after_s")
	s.put("quota_backoff_s", "s", float64(q.WaitedUS)/1e6, q.Waits)
	if !r.quota {
		return
	}
	if q.Limit > 0 {
		s.count("quota_limit", q.Limit, n)
	}
	if q.WindowUS > 0 {
		s.seconds("quota_window_s", float64(q.WindowUS), n)
	}
	if q.MaxRetryAfter > 0 {
		s.seconds("quota_retry_after_s", float64(q.MaxRetryAfter), n)
	}
	s.caveat(capacityIsQuota(affected))
	limit := "no header names the limit"
	if q.Limit > 0 {
		limit = fmt.Sprintf("the target names %s", plural(q.Limit, "call", "calls"))
		if q.WindowUS > 0 {
			limit += " per " + secs(float64(q.WindowUS)/1e6)
		}
	}
	s.finding("quota", result.Warning, fmt.Sprintf(
		"The target enforces a quota: %d of %d attempts were refused for it and %s. What the load meets is that quota, so it is reported as one and not as unreliability.",
		r.limited(), n, limit), tally(q.Seen, 5))
}

// errors reports what failed, by kind, with one excerpt.
func (s *sheet) errors(r requests) {
	if r.Failures() == 0 {
		return
	}
	sev := result.Warning
	if r.Successes() == 0 {
		sev = result.Critical
	}
	s.finding("errors", sev, fmt.Sprintf("%d of %d requests failed (%.1f%%): %s.", r.Failures(), r.Measured(),
		100*float64(r.Failures())/float64(r.Measured()), tally(r.Kinds, 6)), tally(r.Errors, 3))
}

// generator withholds times that our own side may have spent.
func (s *sheet) generator(st *merge.Stage, silenced ...string) {
	g := &st.Generator
	if g.Lag.N() > 0 {
		s.seconds("generator_lag_p99_s", float64(g.Lag.Quantile(990)), g.Lag.N())
	}
	if g.Saturated {
		s.caveat(generatorSaturated(g.Reason, silenced))
	}
	s.withheld(st, silenced...)
}

// withheld notes agents whose times are not among those of a stage.
func (s *sheet) withheld(st *merge.Stage, affected ...string) {
	if len(st.Withheld) > 0 {
		s.caveat(generatorWithheld([]*merge.Stage{st}, affected...))
	}
}
