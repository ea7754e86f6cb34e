package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// expectedAnswer is how a tool refuses arguments, on the wire.
func expectedAnswer(fields []string) string {
	field := "the field"
	if len(fields) > 0 {
		field = fit(clean(fields[0]), 40)
	}
	return `{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":` +
		asciiJSON(field+": what is wrong with it") + `}]}}`
}

// culprit names the tool a topic is about and the fields that showed it.
func (r *reading) culprit(key string) (tool string, fields []string) {
	shows := map[string]func(malformed) bool{"crash": hasCrashed, "silent": wentUnanswered, "unvalidated": malformed.violation}[key]
	for _, c := range r.cases() {
		if shows == nil || !shows(c) {
			continue
		}
		tool = cmp.Or(tool, c.Tool)
		if field := strings.TrimLeft(c.Path, "/."); field != "" && c.Tool == tool && !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return cmp.Or(tool, r.Target.Tool), fields
}

// maxPayload is the longest reproducer shown whole, in bytes.
const maxPayload = 500

// caseEvidence describes the malformed calls that a filter keeps and ends with
// a reproducer: the first of them as a JSON-RPC message to paste.
func (r *reading) caseEvidence(keep func(malformed) bool) []string {
	hits := slices.DeleteFunc(r.cases(), func(c malformed) bool { return !keep(c) })
	if len(hits) == 0 {
		return nil
	}
	lead := "Cases:"
	if slices.ContainsFunc(hits, func(c malformed) bool { return c.Why != "" }) {
		lead = "Cases, with what the schema says:"
	}
	out := []string{lead + caseList(hits)}
	first := hits[0]
	if first.Exit != "" {
		out = append(out, "Process afterwards: "+esc(fit(clean(first.Exit), 120)))
	}
	if first.Message != "" && first.Outcome != accepted {
		out = append(out, "The client saw: "+code(fit(clean(first.Message), 160)))
	} else if first.Message != "" {
		out = append(out, "Answer, from the server: "+code(fit(clean(first.Message), 160)))
	}
	if c := shortest(hits); c != nil {
		out = append(out, reproduceWith+"\n\n"+indent(reproducer(*c), "  "))
	}
	return out
}

// maxCases bounds the cases a section lists.
const maxCases = 8

// caseList is one line per case, below a list item.
func caseList(cases []malformed) string {
	var b strings.Builder
	for i, c := range cases {
		if i == maxCases {
			fmt.Fprintf(&b, "\n  - and %d more", len(cases)-i)
			break
		}
		b.WriteString("\n  - " + code(fit(clean(strings.TrimPrefix(c.Tool+": "+cmp.Or(c.Label, c.Kind), ": ")), 60)))
		if why := clean(c.Why); why != "" {
			b.WriteString(": " + esc(fit(why, 100)))
		} else if !c.Forbidden {
			b.WriteString(": no rule against it")
		}
	}
	return b.String()
}

// reproduceWith leads a reproducer.
const reproduceWith = "Reproduce: `tools/call` with"

// shortest is the case with the shortest payload, nil when none was kept.
func shortest(cases []malformed) *malformed {
	var best *malformed
	for i := range cases {
		if n := len(cases[i].Payload); n > 0 && (best == nil || n < len(best.Payload)) {
			best = &cases[i]
		}
	}
	return best
}

// reproducer is the case as a fenced JSON-RPC message on one line.
func reproducer(c malformed) string {
	var p page
	message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` +
		asciiJSON(map[string]any{"name": c.Tool, "arguments": c.Payload}) + `}`
	if len(message) > maxPayload {
		p.fence("text", message[:maxPayload]+fmt.Sprintf("\n(shortened, %d bytes in all)", len(message)))
	} else {
		p.fence("json", message)
	}
	return strings.TrimRight(p.String(), "\n")
}

// asciiJSON encodes a value with everything but printable ASCII escaped: the
// same value for a machine, and nothing that can act on a reader's screen.
func asciiJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	var b strings.Builder
	for _, r := range string(raw) {
		if r >= 0x20 && r < 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(text, "\n", "\n"+by)
}
