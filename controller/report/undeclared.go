package report

import (
	"slices"
	"strings"
)

// lowStrictness is the share of classic malformed calls below which the schemas
// leave most of the checking to luck.
const lowStrictness = 0.5

// maxUndeclared bounds the fields that are named.
const maxUndeclared = 5

// missingRule says for a kind of malformed call that no schema forbids which
// keyword would.
var missingRule = map[string]string{
	"null_required":    "type",
	"wrong_type":       "type",
	"empty_string":     "minLength",
	"very_long_string": "maxLength",
	"out_of_range":     "minimum, maximum",
	"extra_param":      "additionalProperties: false",
	"missing_required": "required",
}

// looseField is a field that took malformed values no rule forbids.
type looseField struct {
	name  string
	rules []string
}

// undeclared names fields without bounds. It is advice about the schema and no
// finding: what the server accepted, it had never promised to refuse.
func (p *page) undeclared(r *reading) {
	share, ok := r.number("contract", "schema_strictness")
	fields := r.looseFields()
	if !ok || share >= lowStrictness || len(fields) == 0 {
		return
	}
	p.heading(2, "For information: declare what you reject")
	p.line("The schemas forbid ", rate(share), " of the classic malformed calls. These were accepted, and no rule is against them:")
	p.line()
	for _, f := range fields[:min(len(fields), maxUndeclared)] {
		p.line("- ", code(fit(clean(f.name), 80)), ": no ", code(strings.Join(f.rules, ", ")))
	}
	if n := len(fields) - maxUndeclared; n > 0 {
		p.line("- and ", times(int64(n), "more field"))
	}
	p.line()
	p.line("A bound in the schema reaches the model before it calls, and the next scan tests it.")
}

// looseFields lists them in the order of the cases.
func (r *reading) looseFields() []looseField {
	var out []looseField
	for _, c := range r.cases() {
		rule := missingRule[c.Kind]
		if rule == "" || c.Outcome != accepted || c.Forbidden {
			continue
		}
		name := c.Tool
		if field := strings.Trim(c.Path, "/"); field != "" && c.Kind != "extra_param" {
			name += "." + field
		}
		i := slices.IndexFunc(out, func(f looseField) bool { return f.name == name })
		if i < 0 {
			i = len(out)
			out = append(out, looseField{name: name})
		}
		if !slices.Contains(out[i].rules, rule) {
			out[i].rules = append(out[i].rules, rule)
		}
	}
	return out
}
