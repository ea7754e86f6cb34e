package measure

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// shownNotes bounds the protocol findings of a scan; the rest is counted.
const shownNotes = 10

// note is what a target did against its protocol without failing for it.
type note struct {
	text string
	seen int64
}

// protocolProbe is where protocol findings are shown: the contract probe, or
// latency where that is left out or has no tools to work on.
func protocolProbe(in *Input) string {
	if in.Spec.Selected("contract") && len(in.Survey.Tools) > 0 || !in.Spec.Selected("latency") {
		return "contract"
	}
	return "latency"
}

// protocolNotes collects what the survey and every stage noted, the most
// frequent first. Notes that differ in digits alone, such as line numbers and
// durations, are one, told by the first in byte order.
func protocolNotes(in *Input) []note {
	counts := map[string]int64{}
	for _, text := range in.Survey.Notes {
		counts[text]++
	}
	for _, st := range in.Summary.Stages {
		if st.Tally != nil {
			for text, n := range st.Tally.Notes {
				counts[text] += n
			}
		}
	}
	delete(counts, metrics.OtherText)
	var notes []note
	at := map[string]int{}
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		shape := withoutDigits(text)
		i, known := at[shape]
		if !known {
			i = len(notes)
			at[shape] = i
			notes = append(notes, note{text: text})
		}
		notes[i].seen += counts[text]
	}
	slices.SortStableFunc(notes, func(a, b note) int { return cmp.Compare(b.seen, a.seen) })
	return notes
}

func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// protocol reports each note as a finding of its own.
func (s *sheet) protocol(in *Input) {
	if s.probe.Name != protocolProbe(in) {
		return
	}
	notes := protocolNotes(in)
	for i, n := range notes {
		if i == shownNotes {
			s.finding("protocol", result.Warning, fmt.Sprintf("Protocol: and %d more.", len(notes)-i), "")
			return
		}
		times := ""
		if n.seen > 1 {
			times = fmt.Sprintf(" (seen %d times)", n.seen)
		}
		s.finding("protocol", result.Warning, "Protocol: "+strings.TrimRight(n.text, ".")+times+".", "")
	}
}
