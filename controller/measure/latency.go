package measure

import (
	"fmt"

	"ordeal/controller/result"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// Features of a latency curve that are worth a finding.
const (
	clientTimeout = 30.0 // seconds, the usual read timeout of a client
	heavyTail     = 3.0  // p99 over p50
	overheadShare = 0.2  // of the server's own time
	ttftShare     = 0.5  // of the whole latency
	noticeable    = 0.05 // seconds; a tail or a knee below it is noise of the machine
	thinSample    = 20   // below it p95 is the maximum
	carriesP99    = 100  // the least sample whose p99 is not its maximum
)

// percentiles are what a saturated generator or a dead target takes away.
var latencyPercentiles = []string{"p50_s", "p95_s", "p99_s", "observed_p99_s", "p95_incl_timeouts_s",
	"min_s", "max_s", "mean_s", "stdev_s", "tail_ratio", "tool_call_overhead_s"}

// latency measures the stage of one caller, or of a fixed arrival rate.
func latency(in *Input, s *sheet) {
	st := in.Summary.Stage("latency")
	if !s.ran(st, "p95_s", "p99_s", "error_rate") {
		return
	}
	if in.Spec.Rate == 0 && !in.Survey.Virtual {
		s.longest = in.Spec.Timeout.Microseconds() // a longer call is no success
	}
	r := reliabilityOf(st.Tally)
	s.requests(r)
	s.latencies(r)
	s.inclTimeouts(r.Tally, in.Spec.Timeout.Microseconds())
	s.streams(r.Tally)
	s.overhead(r.Tally)
	s.seconds("startup_s", float64(in.Survey.StartupUS), min(in.Survey.StartupUS, 1))
	if in.Spec.Rate > 0 {
		s.openLoop(in, st)
	}
	if text, is := skewed(st); is {
		s.caveat(startSkewed([]string{text}, "p50_s", "p95_s", "p99_s"))
	}
	s.generator(st, latencyPercentiles...)
	if r.Successes() == 0 && in.payloadRejected() {
		s.probe.Applicable = false
		s.probe.Summary = "not measured: the target rejected the arguments of the scan"
		s.caveat(payloadRejected(in, append([]string{"error_rate", "error_rate_raw"}, latencyPercentiles...)))
		return
	}
	s.quota(r, "error_rate")
	s.latencyFindings(r)
	s.latencySummary(r)
}

// latencies records the distribution of the successes.
func (s *sheet) latencies(r requests) {
	d, n := &r.Latency, r.Latency.N()
	var open []string
	highest := 0.0
	for _, p := range []struct {
		name string
		q    float64
	}{{"p50_s", 0.5}, {"p95_s", 0.95}, {"p99_s", 0.99}} {
		if !s.percentile(p.name, d, p.q) && (p.name != "p99_s" || n >= carriesP99) {
			open, highest = append(open, p.name), p.q
		}
	}
	s.seconds("observed_p99_s", float64(d.Quantile(990)), n)
	s.seconds("min_s", float64(d.Min()), n)
	s.seconds("max_s", float64(d.Max()), n)
	s.seconds("mean_s", d.Mean(), n)
	s.missing("s", n, "stdev_s")
	if n > 1 {
		s.seconds("stdev_s", d.Stdev(), n)
	}
	s.missing("x", n, "tail_ratio")
	if p50 := d.Quantile(500); p50 > 0 {
		s.put("tail_ratio", "x", float64(d.Quantile(990))/float64(p50), n)
	}
	s.latencyCaveats(r)
	if len(open) > 0 {
		s.caveat(noUpperBound(r, float64(s.longest)/1e6, highest, open))
	}
}

// bounding is the least number of values whose maximum bounds the q-quantile
// from above.
func bounding(q float64) int64 {
	n := stat.SmallestSample(q)
	for {
		if _, hi, _ := stat.QuantileRanks(n, q, confidence); hi > 0 {
			return n
		}
		n++
	}
}

func (s *sheet) latencyCaveats(r requests) {
	n := r.Latency.N()
	if n == 0 {
		s.caveat(allFailed())
		return
	}
	if n < carriesP99 {
		s.caveat(p99Below100(r))
	}
	if n < thinSample {
		s.caveat(under20(r))
	}
}

// inclTimeouts records p95 with every timeout counted as a call that took at
// least the limit: what a caller waits, where p95_s is what a success takes.
func (s *sheet) inclTimeouts(t *metrics.Tally, limit int64) {
	const name = "p95_incl_timeouts_s"
	var all metrics.Dist
	all.Merge(&t.Latency)
	t.TimedOut.Each(func(v, count int64) { all.RecordN(max(v, limit), count) })
	s.seconds(name, float64(all.Quantile(950)), all.N())
	if t.TimedOut.N() > 0 && t.Latency.N() > 0 && all.Quantile(950) != t.Latency.Quantile(950) {
		s.caveat(censoredTimeouts(t.TimedOut.N(), float64(all.Quantile(950))/1e6))
	}
}

// streams records the times of streamed answers.
func (s *sheet) streams(t *metrics.Tally) {
	s.percentile("ttft_p50_s", &t.TTFT, 0.5)
	s.percentile("ttft_p95_s", &t.TTFT, 0.95)
	s.percentile("inter_token_gap_p50_s", &t.Gap, 0.5)
	s.percentile("inter_token_gap_p95_s", &t.Gap, 0.95)
	s.count("truncated_streams", t.Truncated, t.Measured())
}

// overhead sets the server's own time against ours. Without one, transport and
// work cannot be told apart.
func (s *sheet) overhead(t *metrics.Tally) {
	server, client := &t.ServerTime, &t.ClientTime
	s.percentile("server_time_p50_s", server, 0.5)
	s.seconds("client_time_p50_s", float64(client.Quantile(500)), client.N())
	s.missing("s", 0, "tool_call_overhead_s")
	if server.N() > 0 && t.Service.N() > 0 {
		s.seconds("tool_call_overhead_s", float64(max(0, t.Service.Quantile(500)-server.Quantile(500))), server.N())
	}
}

func (s *sheet) latencySummary(r requests) {
	n := r.Measured()
	if r.Successes() == 0 {
		s.probe.Summary = fmt.Sprintf("all %d requests failed", n)
		return
	}
	failed := 100 * float64(r.Failures()) / float64(n)
	if _, ok := s.number("p95_s"); !ok {
		s.probe.Summary = fmt.Sprintf("times withheld, our own side was the limit; %.1f%% of %d requests failed", failed, n)
		return
	}
	s.probe.Summary = fmt.Sprintf("p50 %s, p95 %s, p99 %s of %d requests, %.1f%% failed",
		s.secsOf("p50_s"), s.secsOf("p95_s"), s.secsOf("p99_s"), n, failed)
}

func (s *sheet) latencyFindings(r requests) {
	if r.Successes() == 0 {
		s.finding("all_failed", result.Critical, fmt.Sprintf("None of the %d requests succeeded.", r.Measured()), tally(r.Errors, 3))
		s.errors(r)
		return
	}
	before := len(s.probe.Findings)
	num := func(name string) float64 { v, _ := s.number(name); return v }
	p95, overhead, server := num("p95_s"), num("tool_call_overhead_s"), num("server_time_p50_s")
	if p95 >= clientTimeout {
		s.finding("p95_over_client_timeout", result.Critical, fmt.Sprintf(
			"p95 is %s, beyond the 30s after which most clients give up.", secs(p95)), "")
	}
	if ratio := num("tail_ratio"); ratio >= heavyTail && num("observed_p99_s") >= noticeable {
		s.finding("heavy_tail", result.Warning, fmt.Sprintf(
			"The tail is heavy: p99 is %s, %.1f times the median of %s. Something slows a few calls only, and tuning the common case will not reach it.",
			s.secsOf("observed_p99_s"), ratio, s.secsOf("p50_s")), "")
	}
	if server > 0 && overhead > overheadShare*server {
		s.finding("call_overhead", result.Info, fmt.Sprintf(
			"A call takes %s longer than the %s the server says it worked: time spent on transport and encoding.", secs(overhead), secs(server)), "")
	}
	if ttft := num("ttft_p95_s"); p95 > 0 && ttft/p95 > ttftShare {
		s.finding("ttft_share", result.Info, fmt.Sprintf(
			"p95 until the first token is %s, %.0f%% of the whole: streaming hides little of this wait.", secs(ttft), 100*ttft/p95), "")
	}
	if r.Truncated > 0 {
		s.finding("truncated_streams", result.Warning, fmt.Sprintf("%d of %d answers ended without their end marker.", r.Truncated, r.Measured()), "")
	}
	s.errors(r)
	if len(s.probe.Findings) == before {
		s.finding("nothing_notable", result.Info, s.unremarkable(r), "")
	}
}

func (s *sheet) unremarkable(r requests) string {
	if _, ok := s.number("p95_s"); !ok {
		return fmt.Sprintf("None of %d requests failed.", r.Measured())
	}
	tail := "the tail is short"
	if ratio, _ := s.number("tail_ratio"); ratio >= heavyTail {
		tail = fmt.Sprintf("p99 stays below %.0fms", 1e3*noticeable)
	}
	return fmt.Sprintf("p95 is %s, none of %d requests failed, and %s.", s.secsOf("p95_s"), r.Measured(), tail)
}
