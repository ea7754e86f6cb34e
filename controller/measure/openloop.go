package measure

import (
	"fmt"

	"ordeal/controller/merge"
	"ordeal/controller/result"
	"ordeal/metrics"
)

// rateMet is the share of the requested arrivals that must have been sent for
// the rate to count as met.
const rateMet = 0.95

// openLoop records how an arrival rate was met. Latency then counts from the
// moment a call was due, so a stalled target cannot hide the calls that queued
// up behind it; service_* is the time from sending.
func (s *sheet) openLoop(in *Input, st *merge.Stage) {
	t, w := st.Tally, st.Tally.Window
	s.percentile("service_p50_s", &t.Service, 0.5)
	s.percentile("service_p95_s", &t.Service, 0.95)
	s.percentile("service_p99_s", &t.Service, 0.99)
	for name, permille := range map[string]int64{"lateness_p50_s": 500, "lateness_p95_s": 950, "lateness_p99_s": 990} {
		s.seconds(name, float64(lateness(t, st.Untimed(), permille)), t.Measured()-st.Untimed())
	}
	s.put("requested_rate_rps", "/s", in.Spec.Rate, w.Scheduled)
	s.missing("/s", w.Sent, "achieved_rate_rps")
	due := max(w.Scheduled, w.Sent+w.Dropped)
	s.count("dropped", w.Dropped, due)
	s.rate("dropped_rate", w.Dropped, due)
	if w.SpanUS <= 0 {
		s.caveat(rateUnknown())
		return
	}
	achieved := float64(w.Sent) * 1e6 / float64(w.SpanUS)
	s.put("achieved_rate_rps", "/s", achieved, w.Sent)
	if w.Dropped == 0 && achieved >= rateMet*in.Spec.Rate {
		return
	}
	s.caveat(rateNotSustained(in.Spec.Rate, achieved))
	s.finding("rate_not_sustained", result.Warning, fmt.Sprintf(
		"%s calls/s were asked for and %s calls/s went out: %d of %d arrivals were dropped at the limit of %d calls in flight.",
		digits(in.Spec.Rate, 4), digits(achieved, 4), w.Dropped, w.Scheduled, in.Spec.MaxInFlight), "")
}

// lateness is a nearest-rank percentile over all calls whose times count; Late
// holds only those that were late at all.
func lateness(t *metrics.Tally, untimed, permille int64) int64 {
	n := t.Measured() - untimed
	rank := (n*permille + 999) / 1000
	if inTime := n - t.Late.N(); rank > inTime {
		return t.Late.Rank(rank - inTime)
	}
	return 0
}
