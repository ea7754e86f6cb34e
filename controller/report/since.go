package report

import (
	"maps"
	"slices"
	"strings"
)

// since writes "Since the last scan" from the state blocks of both runs.
// Movement is claimed only where the evidence shows it.
func (p *page) since(before, now *state) {
	p.heading(2, "Since the last scan")
	if before.Target != now.Target {
		p.line("- The previous guide was for ", code(before.Target), ", this one is for ", code(now.Target), ": not compared.")
		return
	}
	for _, w := range mismatches(before, now) {
		p.line("- **Not like for like:** ", w)
	}
	if before.Score != nil || now.Score != nil {
		p.line("- Score: ", optional(before.Score, points), " -> ", optional(now.Score, points), " (a summary; the lines below carry the evidence).")
	}
	var noise, unchanged []string
	for _, t := range tracked {
		m := movement(t, before, now)
		switch m.kind {
		case moved:
			p.line("- ", m.text)
		case withinNoise:
			noise = append(noise, m.text)
		case same:
			unchanged = append(unchanged, m.text)
		}
	}
	if len(noise) > 0 {
		p.line("- Within noise: ", strings.Join(noise, "; "), ".")
	}
	if len(unchanged) > 0 {
		p.line("- Unchanged: ", strings.Join(unchanged, ", "), ".")
	}
}

// mismatches names what keeps two runs of one target from being like for like.
func mismatches(before, now *state) []string {
	var out []string
	if before.foreign {
		out = append(out, "the previous guide was written by RateMyAgent, another instrument.")
	}
	if before.Tool != now.Tool && !(before.foreign && before.Tool == "") {
		out = append(out, "another tool was called: "+code(before.Tool)+" then, "+code(now.Tool)+" now.")
	} else if !sameJSON(before.Args, now.Args) && !(before.foreign && len(before.Args) == 0) {
		out = append(out, "the tool was called with other arguments.")
	}
	if before.Comparability != "" && now.Comparability != "" && before.Comparability != now.Comparability {
		out = append(out, "the comparability hash differs"+changedFields(before.Fields, now.Fields)+".")
	}
	return out
}

// changedFields lists the comparability fields that differ.
func changedFields(before, now map[string]string) string {
	all := maps.Clone(now)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, before)
	var names []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if before[k] != now[k] {
			names = append(names, code(k))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " in " + strings.Join(names[:min(len(names), 8)], ", ")
}

type moveKind uint8

const (
	unknown moveKind = iota // measured in neither run
	same
	withinNoise
	moved
)

type move struct {
	kind moveKind
	text string
}

// movement judges one metric. Counts of what happened to the calls sent have
// no noise. Any other number moved when the intervals of both runs are apart;
// with one interval, when the other value lies outside it.
func movement(t trackedMetric, before, now *state) move {
	old, oldOK := before.value(t.key)
	cur, curOK := now.value(t.key)
	switch {
	case !oldOK && !curOK:
		return move{}
	case !oldOK:
		return move{moved, sentenceCase(t.label) + ": not measured before, now " + quantity(cur, t.unit) + "."}
	case !curOK:
		return move{moved, sentenceCase(t.label) + ": " + quantity(old, t.unit) + " before, not measured now."}
	case old == cur:
		return move{same, t.label + " " + quantity(cur, t.unit)}
	}
	arrow := before.shown(t, old) + " -> " + now.shown(t, cur)
	a, aOK := before.Intervals[t.key]
	b, bOK := now.Intervals[t.key]
	basis := ""
	switch {
	case t.exact:
		basis = "counted"
	case aOK && bOK && apart(a, b):
		basis = "the 95% intervals do not overlap"
	case aOK != bOK && apart(orPoint(a, aOK, old), orPoint(b, bOK, cur)):
		basis = "outside the one 95% interval there is"
	case !aOK && !bOK:
		return move{moved, sentenceCase(t.label) + ": " + arrow + ", no interval in either run, so this may be noise."}
	default:
		return move{withinNoise, t.label + " " + arrow}
	}
	word := "regressed"
	if cur > old == t.higherBetter {
		word = "improved"
	}
	return move{moved, sentenceCase(t.label) + " **" + word + "**: " + arrow + " (" + basis + ")."}
}

func (s *state) value(key string) (float64, bool) {
	v := s.Metrics[key]
	if v == nil {
		return 0, false
	}
	return *v, true
}

// shown is a value with its n, for counts "2 of 15".
func (s *state) shown(t trackedMetric, v float64) string {
	text := quantity(v, t.unit)
	if n := s.N[t.key]; n > 0 && t.exact {
		text += " of " + count(float64(n))
	}
	return text
}

func orPoint(s span, ok bool, v float64) span {
	if ok {
		return s
	}
	return span{v, v}
}

func apart(a, b span) bool { return a[1] < b[0] || b[1] < a[0] }

// sentenceCase begins with a capital unless the first word holds a digit, as
// in p95.
func sentenceCase(s string) string {
	if len(s) < 2 || s[1] >= '0' && s[1] <= '9' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
