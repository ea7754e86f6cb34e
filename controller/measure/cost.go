package measure

import (
	"fmt"

	"ordeal/controller/result"
	"ordeal/metrics"
	"ordeal/metrics/price"
)

// Limits of what counts as prompt bloat: a fixed prefix this large a share of
// the input, and long enough for a provider's cache to take it.
const (
	bloatShare   = 0.5
	bloatTokens  = 1024
	cacheSaving  = 0.9 // a cached input token costs a tenth
	contextHeavy = 10.0
	costly       = 0.01 // USD per request
)

// cost measures tokens and money over the operations of the latency stage, or
// of a stage of its own.
func cost(in *Input, s *sheet) {
	st := in.Summary.Stage("cost")
	if st == nil {
		st = in.Summary.Stage("latency")
	}
	if st == nil && !in.Survey.ReportsUsage {
		s.noUsage("not run: the target reports no tokens")
		return
	}
	if !s.ran(st, "cost_per_request") {
		return
	}
	r := reliabilityOf(st.Tally)
	s.requests(r)
	s.fact("reported_usage", r.Usage > 0, r.Successes())
	if r.Usage == 0 {
		s.noUsage(fmt.Sprintf("the target reported no token usage in %d requests", r.Measured()))
		return
	}
	s.tokens(r.Tally)
	s.bloat(&r.TokensIn)
	s.money(in, r.Tally)
	s.costFindings()
	s.costSummary()
}

func (s *sheet) noUsage(summary string) {
	s.probe.Applicable = false
	s.probe.Summary = summary
	s.fact("reported_usage", false, 0)
	s.caveat(noUsage())
}

func (s *sheet) tokens(t *metrics.Tally) {
	in, out := &t.TokensIn, &t.TokensOut
	s.mean("mean_input_tokens", "tokens", in)
	s.mean("mean_output_tokens", "tokens", out)
	s.put("p95_input_tokens", "tokens", in.Quantile(950), in.N())
	s.put("min_input_tokens", "tokens", in.Min(), in.N())
	s.put("max_input_tokens", "tokens", in.Max(), in.N())
	s.put("total_input_tokens", "tokens", in.Sum(), in.N())
	s.put("total_output_tokens", "tokens", out.Sum(), out.N())
	s.put("cached_input_tokens", "tokens", t.CachedIn, in.N())
	s.missing("x", in.N(), "io_ratio")
	if out.Sum() > 0 {
		s.put("io_ratio", "x", in.Mean()/out.Mean(), in.N())
	}
}

// bloat estimates the part of the prompt that every request carries by the
// smallest prompt seen, which bounds it from above. Prompts that are all equal
// in length show no such part: any prompt would look like pure prefix.
func (s *sheet) bloat(in *metrics.Dist) {
	prefix, mean, n := in.Min(), in.Mean(), in.N()
	s.put("static_prefix_tokens", "tokens", prefix, n)
	s.put("variable_tokens", "tokens", mean-float64(prefix), n)
	s.missing("rate", n, "bloat_share")
	detected := false
	if mean > 0 {
		share := float64(prefix) / mean
		s.put("bloat_share", "rate", share, n)
		detected = share >= bloatShare && prefix >= bloatTokens
	}
	s.fact("bloat_detected", detected, n)
	if in.Min() == in.Max() {
		s.caveat(constantPrompt(n))
	}
}

// money projects the mean request. The interval adds the half-widths of both
// token means, which is the widest they can make together.
func (s *sheet) money(in *Input, t *metrics.Tally) {
	p, source := in.price()
	names := []string{"cost_per_request", "cost_per_1k_requests", "cost_per_1m_requests", "cacheable_savings_per_request"}
	s.fact("pricing_source", nil, t.Usage)
	s.fact("model", in.Spec.Target.Model, t.Usage)
	if source == "" {
		s.missing("$", t.Usage, append(names, "input_price_per_1m", "output_price_per_1m")...)
		s.caveat(noPrice(in.Spec.Target.Model))
		return
	}
	s.fact("pricing_source", source, t.Usage)
	s.put("input_price_per_1m", "$", p.Input, t.Usage)
	s.put("output_price_per_1m", "$", p.Output, t.Usage)
	usd := p.Cost(t.TokensIn.Sum(), t.TokensOut.Sum(), t.CachedIn) / float64(t.Usage)
	for i, scale := range []float64{1, 1e3, 1e6} {
		s.put(names[i], "$", usd*scale, t.Usage)
		s.boundCost(names[i], p, scale)
	}
	s.put(names[3], "$", float64(t.TokensIn.Min())*p.Input*cacheSaving/1e6, t.Usage)
	if t.CachedIn > 0 && p.CachedInput == p.Input {
		s.caveat(cacheIgnored(t.CachedIn, t.TokensIn.Sum()))
	}
}

func (s *sheet) boundCost(name string, p price.Rate, scale float64) {
	in, out := s.probe.Metrics["mean_input_tokens"].Interval, s.probe.Metrics["mean_output_tokens"].Interval
	if in == nil || out == nil {
		return
	}
	m := s.probe.Metrics[name]
	m.Interval = &metrics.Interval{
		Lo: max(0, (in.Lo*p.Input+out.Lo*p.Output)/1e6*scale),
		Hi: (in.Hi*p.Input + out.Hi*p.Output) / 1e6 * scale,
	}
	s.probe.Metrics[name] = m
}

func (s *sheet) costSummary() {
	in, _ := s.probe.Metrics["mean_input_tokens"].Number()
	out, _ := s.probe.Metrics["mean_output_tokens"].Number()
	s.probe.Summary = fmt.Sprintf("%.0f tokens in and %.0f out per request", in, out)
	if usd, ok := s.probe.Metrics["cost_per_request"].Number(); ok {
		s.probe.Summary += fmt.Sprintf(", %s each, $%.2f per 1,000", dollars(usd), usd*1e3)
		return
	}
	s.probe.Summary += "; no price known: give --price-in and --price-out"
}

func (s *sheet) costFindings() {
	num := func(name string) float64 { v, _ := s.probe.Metrics[name].Number(); return v }
	before := len(s.probe.Findings)
	constant := num("min_input_tokens") == num("max_input_tokens")
	if s.probe.Metrics["bloat_detected"].Value == true && !constant {
		msg := fmt.Sprintf("About %.0f of %.0f input tokens (%.0f%%) come with every request. A prompt cache would take that prefix.",
			num("static_prefix_tokens"), num("mean_input_tokens"), 100*num("bloat_share"))
		if saved := num("cacheable_savings_per_request"); saved > 0 {
			msg += fmt.Sprintf(" At a tenth of the input price for cached tokens that saves %s per request.", dollars(saved))
		}
		s.finding("prompt_bloat", result.Warning, msg, "")
	}
	if ratio := num("io_ratio"); ratio > contextHeavy {
		s.finding("context_heavy", result.Info, fmt.Sprintf("Input is %.0f times the output: the bill is for what is sent, not for what comes back.", ratio), "")
	}
	if usd := num("cost_per_request"); usd >= costly {
		s.finding("cost_per_request", result.Info, fmt.Sprintf("A request costs $%.4f, a thousand $%.2f and a million $%.0f.", usd, usd*1e3, usd*1e6), "")
	}
	if len(s.probe.Findings) == before {
		s.finding("nothing_notable", result.Info, fmt.Sprintf("%.0f input tokens per request%s.", num("mean_input_tokens"), prefixText(num("static_prefix_tokens"), num("bloat_share"), constant)), "")
	}
}

// prefixText says why the fixed part of the prompts is no finding.
func prefixText(tokens, share float64, constant bool) string {
	switch {
	case constant:
		return ""
	case tokens < bloatTokens && share >= bloatShare:
		return fmt.Sprintf("; fixed prefix of %.0f tokens, below the %d worth caching", tokens, bloatTokens)
	}
	return "; no large fixed prefix was seen"
}
