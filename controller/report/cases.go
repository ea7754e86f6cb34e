package report

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// malformed is one malformed call as the contract probe lists it in its
// metric "cases". What is absent there stays zero.
type malformed struct {
	Tool      string          `json:"tool"`
	Label     string          `json:"label"`
	Kind      string          `json:"kind"`
	Why       string          `json:"why"` // the rule of the schema that forbids it
	Path      string          `json:"path"`
	Forbidden bool            `json:"forbidden"`
	Outcome   string          `json:"outcome"` // one of fates
	Message   string          `json:"message"`
	Payload   json.RawMessage `json:"payload"`
	Exit      string          `json:"exit"`
	Wrongly   *bool           `json:"wrongly_accepted"`
}

// What became of a malformed call, worst first.
const (
	crashed    = "crashed"
	unanswered = "unanswered"
	accepted   = "accepted"
	rejected   = "rejected"
)

var fates = []string{crashed, unanswered, accepted, rejected}

// violation reports a success for input that the schema forbids.
func (c malformed) violation() bool {
	if c.Wrongly != nil {
		return *c.Wrongly
	}
	return c.Forbidden && c.Outcome == accepted
}

// cases decodes the malformed calls of the contract probe, nil when the
// document lists none.
func (r *reading) cases() []malformed {
	raw, err := json.Marshal(r.metric("contract", "cases").Value)
	if err != nil {
		return nil
	}
	return decode[[]malformed](raw)
}

// caseKind is one kind of malformed call and the worst that became of it.
type caseKind struct {
	kind, worst string
	sent        int // 0: not recorded
}

// caseKinds sums the cases by kind; documents without single cases may hold
// the worst outcome per kind as a metric of its own.
func (r *reading) caseKinds() []caseKind {
	byKind := map[string]*caseKind{}
	var out []*caseKind
	for _, c := range r.cases() {
		k := byKind[c.Kind]
		if k == nil {
			k = &caseKind{kind: c.Kind, worst: rejected}
			byKind[c.Kind] = k
			out = append(out, k)
		}
		k.sent++
		if i := slices.Index(fates, c.Outcome); i >= 0 && i < slices.Index(fates, k.worst) {
			k.worst = c.Outcome
		}
	}
	if len(out) == 0 {
		for _, t := range r.counts("contract", "outcome_by_case") {
			out = append(out, &caseKind{kind: t.name, worst: scalar(t.value, "")})
		}
	}
	slices.SortStableFunc(out, func(a, b *caseKind) int {
		return cmp.Or(slices.Index(fates, a.worst)-slices.Index(fates, b.worst), strings.Compare(a.kind, b.kind))
	})
	kinds := make([]caseKind, len(out))
	for i, k := range out {
		kinds[i] = *k
	}
	return kinds
}
