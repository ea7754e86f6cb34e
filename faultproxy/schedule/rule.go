package schedule

import (
	"errors"
	"fmt"
	"slices"
)

// Rule injects faults at a rate. Kinds share the rate equally.
type Rule struct {
	// ID names the rule's draws. Two rules of one id would fault the same
	// operations; a rule keeps its draws when it is moved in a file.
	ID      string `json:"id"`
	Kinds   []Kind `json:"kinds"`
	RatePPB PPB    `json:"rate_ppb"`
	// From and To limit the rule to the operations From <= op < To; To 0 means
	// no end. A window by index needs no clock, so it is the same on every
	// machine.
	From uint64 `json:"from,omitempty"`
	To   uint64 `json:"to,omitempty"`
	// Exactly, if above 0, fixes how many operations of the window have their
	// first attempt faulted; which ones is drawn. RatePPB then counts for
	// retries alone. A claim about recovery rests on disrupted operations, and
	// this gives the same number of them with far fewer calls than a coin.
	Exactly uint64 `json:"exactly,omitempty"`
	// Burst gates the rule: it acts in bad epochs only. All attempts of an
	// operation share its epoch.
	Burst *Burst `json:"burst,omitempty"`
}

// Validate names every mistake of the rule.
func (r Rule) Validate() error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("fault rule %q: "+format, append([]any{r.ID}, args...)...))
	}
	if r.ID == "" {
		add("has no id")
	}
	r.validateKinds(add)
	if r.RatePPB > One {
		add("rate of %d parts per %d is above 1", r.RatePPB, One)
	}
	if r.To != 0 && r.To <= r.From {
		add("window %d..%d holds no operation", r.From, r.To)
	}
	if r.Exactly > 0 {
		r.validateExactly(add)
	}
	if r.Burst != nil {
		if err := r.Burst.Validate(); err != nil {
			add("%w", err)
		}
	}
	return errors.Join(errs...)
}

func (r Rule) validateKinds(add func(format string, args ...any)) {
	if len(r.Kinds) == 0 {
		add("lists no kind; valid: %v", DefaultKinds())
	}
	for i, k := range r.Kinds {
		if k == None || k >= kindCount {
			add("cannot inject %v", k)
		}
		if slices.Contains(r.Kinds[:i], k) {
			add("lists %v twice; kinds share the rate equally, so use a second rule to give one more", k)
		}
	}
}

func (r Rule) validateExactly(add func(format string, args ...any)) {
	switch {
	case r.To == 0:
		add("exactly %d faults need a window with an end", r.Exactly)
	case r.To > r.From && r.Exactly > r.To-r.From:
		add("exactly %d faults do not fit into %d operations", r.Exactly, r.To-r.From)
	}
	if r.Burst != nil {
		add("exactly %d faults cannot also depend on bursts", r.Exactly)
	}
}

// own returns a copy that shares nothing with the caller's rule and lists its
// kinds in the order of Kind: the order of listing must not change a draw.
func (r Rule) own() Rule {
	r.Kinds = slices.Sorted(slices.Values(r.Kinds))
	if r.Burst != nil {
		burst := *r.Burst
		r.Burst = &burst
	}
	return r
}

// ForPass returns copies of rules whose ids carry the name of a pass. Passes
// over the same operation numbers (degradation, recovery) need it: under the
// same ids they would fault the same operations, and one would repeat the other
// instead of adding to it.
func ForPass(pass string, rules []Rule) []Rule {
	named := slices.Clone(rules)
	for i := range named {
		named[i].ID = pass + "/" + named[i].ID
	}
	return named
}
