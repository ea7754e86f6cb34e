package report

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"ordeal/controller/result"
)

// loading answers questions about a load test that several formats ask.
type loading struct {
	*reading
	load *result.Load
	last result.LoadLevel // the numbers are about it; empty when no load was sent
}

// loading views the document as a load test; without one it is an empty load.
func (r *reading) loading() *loading {
	v := &loading{reading: r, load: cmp.Or(r.Load, &result.Load{})}
	if n := len(v.load.Levels); n > 0 {
		v.last = v.load.Levels[n-1]
	}
	return v
}

func (v *loading) open() bool { return v.load.Model == "open" }

// loadVerdictWord is the first word of a load's verdict: there is no score.
func loadVerdictWord(v result.Verdict) string {
	switch {
	case v.Passed == nil:
		return "NO VERDICT"
	case *v.Passed:
		return "PASS"
	}
	return "FAIL"
}

// loadVerdictText is the verdict in one sentence: the word, then what decided it.
func (r *reading) loadVerdictText() string {
	word := loadVerdictWord(r.Verdict)
	if unproven := namesOf(r, result.Unproven); word == "PASS" && len(unproven) > 0 {
		word += " (unproven: " + strings.Join(unproven, ", ") + ")"
	}
	why := reasons(r.Verdict)
	if why == "" {
		var said []string
		for _, c := range checksInOrder(r.Checks) {
			if text := strings.TrimRight(clean(c.Reason), ". "); text != "" {
				said = append(said, text)
			}
		}
		why = cmp.Or(strings.Join(said, "; "), "nothing was asked of the target")
	}
	text := sentence(word + ": " + why)
	if r.Run.Partial {
		text += " Partial run."
	}
	return text
}

// modelText says which model the load follows, and what that does to a stall.
func (v *loading) modelText() string {
	switch {
	case v.open():
		arrivals := cmp.Or(clean(v.load.Arrivals), "constant")
		return "open loop, " + fit(arrivals, maxID) + " arrivals: a call counts from the moment it was due, so a stall shows in every arrival it delays"
	case v.load.Model == "closed":
		return "closed loop: a caller waits for its answer before it calls again"
	}
	return cmp.Or(fit(clean(v.load.Model), maxID), "unknown")
}

// hiddenStall is what a reader of a closed loop has to know; empty otherwise.
func (v *loading) hiddenStall() string {
	if v.load.Model != "closed" {
		return ""
	}
	return "a stall of the target hides behind waiting callers, who send nothing meanwhile; --rate R (arrivals per second) asks for an open loop, which shows it"
}

// asked writes a level of load in its unit.
func (v *loading) asked(level float64) string {
	if v.open() {
		return callRate(level) + " calls/s"
	}
	if level == 1 {
		return "1 caller"
	}
	return callRate(level) + " callers"
}

// callRate is a rate of calls or a number of callers without its unit: a decimal
// below a thousand, unless it is none.
func callRate(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return absent
	case x != 0 && math.Abs(x) < 0.05:
		return strconv.FormatFloat(x, 'g', 2, 64)
	case math.Abs(x) >= 1000:
		return plain(x, 0)
	}
	return strings.TrimSuffix(plain(x, 1), ".0")
}

// maxRamps bounds the stretches of a profile in one line.
const maxRamps = 5

// profileText is the course of the load that was asked for.
func (v *loading) profileText() string {
	var parts []string
	for i, r := range v.load.Profile {
		if i == maxRamps {
			parts = append(parts, times(int64(len(v.load.Profile)-i), "more stage"))
			break
		}
		text := v.asked(r.To) + " for " + lasting(r.ForS)
		if r.From != r.To {
			text = "from " + callRate(r.From) + " to " + v.asked(r.To) + " over " + lasting(r.ForS)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", then ")
}

// lasting is a length of time without the decimals of a measurement.
func lasting(s float64) string {
	switch {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return absent
	case s >= 120 && s == math.Trunc(s):
		m := math.Floor(s / 60)
		if rest := s - 60*m; rest > 0 {
			return count(m) + "m" + count(rest) + "s"
		}
		return count(m) + "m"
	case s >= 1:
		return strings.TrimSuffix(plain(s, 1), ".0") + "s"
	}
	return seconds(s)
}

// measuredText says which part of the load the numbers are about.
func (v *loading) measuredText() string {
	l := v.load
	if l.MeasuredS <= 0 && l.WarmupS <= 0 && l.DrainS <= 0 {
		return ""
	}
	text := lasting(l.MeasuredS)
	var off []string
	if l.WarmupS > 0 {
		off = append(off, lasting(l.WarmupS)+" of warm-up")
	}
	if l.DrainS > 0 {
		off = append(off, lasting(l.DrainS)+" of drain after the end of the load")
	}
	if len(off) == 0 {
		return text + ", nothing cut off"
	}
	return text + "; cut off: " + strings.Join(off, " and ")
}

// notSustained is "rate not sustained: 50.1 of 100 calls/s", empty when it was, or
// when nobody knows.
func (v *loading) notSustained() string {
	if v.last.Sustained == nil || *v.last.Sustained {
		return ""
	}
	achieved, _ := v.last.Achieved.Number()
	asked := v.last.Asked
	if offered, ok := v.last.Offered.Number(); ok && len(v.load.Profile) > 1 {
		asked = offered // the peak is not what a course of several stages asks for
	}
	if c := v.check("rate_sustained"); c != nil && c.Observed != nil { // the same figures as in the verdict
		achieved, asked = *c.Observed, c.Limit
	}
	return "rate not sustained: " + callRate(achieved) + " of " + callRate(asked) + " calls/s"
}

// stepName is a step as people call it; a scenario as a whole is said to be one.
func stepName(s result.LoadStep) string {
	if s.Step == "" {
		return name(s.Scenario) + " (whole)"
	}
	return name(s.Scenario) + " / " + name(s.Step)
}

// stepHead and stepCells are the table of a workload's steps.
var stepHead = []string{"step", "n", "p50", "p95", "95% interval", "p99", "errors", "95% interval"}

func stepCells(s result.LoadStep) []string {
	return []string{stepName(s), denominator(s.ErrorRate.N), shown(s.P50, "s"), shown(s.P95, "s"), interval(s.P95.Interval, "s"),
		shown(s.P99, "s"), shown(s.ErrorRate, "rate"), interval(s.ErrorRate.Interval, "rate")}
}

// levelHead and levelCells are the table of the levels that were tried.
var levelHead = []string{"asked", "offered", "achieved", "n", "p95", "errors", "met", "why"}

func (v *loading) levelCells(lv result.LoadLevel) []string {
	asked, offered, achieved := callRate(lv.Asked), absent, absent
	if x, ok := lv.Offered.Number(); ok {
		offered = callRate(x)
	}
	if x, ok := lv.Achieved.Number(); ok {
		achieved = callRate(x)
	}
	if lv.Confirms {
		asked += " (confirms)"
	}
	return []string{asked, offered, achieved, denominator(lv.ErrorRate.N), shown(lv.P95, "s"), shown(lv.ErrorRate, "rate"), metWord(lv.Met), clean(lv.Why)}
}

func metWord(met *bool) string {
	switch {
	case met == nil:
		return "not judged"
	case *met:
		return "yes"
	}
	return "no"
}

// kneeText says where the limit is; empty when none was searched for.
func (v *loading) kneeText() string {
	k := v.load.Knee
	if k == nil {
		return ""
	}
	text := ""
	switch {
	case k.Rate != nil:
		text = callRate(*k.Rate) + " calls/s meet the SLO, confirmed by " + count(float64(k.Met)) + " of " + times(int64(k.Confirmations), "run")
	case k.Lo != nil:
		text = "no rate was confirmed"
	default:
		text = "no rate that was tried met the SLO"
	}
	switch {
	case k.Lo != nil && k.Hi != nil:
		text += "; between " + callRate(*k.Lo) + " (met it) and " + callRate(*k.Hi) + " (did not)"
	case k.Hi != nil:
		text += "; " + callRate(*k.Hi) + " did not"
	case k.Lo != nil:
		text += "; none higher was found that did not meet it"
	}
	if k.Ended != "" {
		text += "; ended: " + fit(clean(k.Ended), 160)
	}
	return sentence(text)
}
