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
	Path      string          `json:"path"`
	Forbidden bool            `json:"forbidden"`
	Outcome   string          `json:"outcome"`
	Delivered *bool           `json:"delivered"`
	Message   string          `json:"message"`
	Payload   json.RawMessage `json:"payload"`
	Exit      string          `json:"exit"`
}

// What became of a malformed call, worst first.
const (
	crashed  = "crashed"
	accepted = "accepted"
	rejected = "rejected"
)

var fates = []string{crashed, accepted, rejected}

// fate sorts an outcome: nothing came back, success, or a refusal.
func (c malformed) fate() string {
	switch {
	case slices.Contains(fates, c.Outcome):
		return c.Outcome
	case c.Delivered != nil && !*c.Delivered:
		return crashed
	case c.Outcome == "ok":
		return accepted
	case c.Delivered == nil && slices.Contains([]string{"timeout", "connection", "session_lost"}, c.Outcome):
		return crashed
	}
	return rejected
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
		if slices.Index(fates, c.fate()) < slices.Index(fates, k.worst) {
			k.worst = c.fate()
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
