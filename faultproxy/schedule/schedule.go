package schedule

import (
	"errors"
	"fmt"
)

// Schedule says for every attempt of every operation whether a fault is
// injected and which. It is immutable and safe for concurrent use.
type Schedule struct {
	stream Stream
	rules  []drawnRule
}

type drawnRule struct {
	Rule
	key RuleKey
}

// Decision is what happens to one attempt.
type Decision struct {
	Kind Kind   `json:"kind"`
	Rule string `json:"rule,omitempty"` // id of the rule that fired, empty for None
	// Delay, Cut and Payload are uniform words for the details of a fault, to be
	// mapped with Below, Between or FromTable: Below(d.Cut, len(body)) is where
	// a malformed body ends. Zero for None.
	Delay   uint64 `json:"-"`
	Cut     uint64 `json:"-"`
	Payload uint64 `json:"-"`
}

// Build returns the schedule of a seed and its rules, or every mistake in them.
// No rules make a schedule that never injects. When several rules fire on one
// attempt, the first in the list wins; the draws of the others are not affected.
func Build(seed string, rules []Rule) (*Schedule, error) {
	s := &Schedule{stream: New(seed)}
	owner := map[RuleKey]string{}
	var errs []error
	for _, r := range rules {
		if err := r.Validate(); err != nil {
			errs = append(errs, err)
		}
		key := KeyOf(r.ID)
		if _, taken := owner[key]; taken {
			errs = append(errs, fmt.Errorf("fault rule %q: the id is used twice; both would fault the same operations", r.ID))
		}
		owner[key] = r.ID
		s.rules = append(s.rules, drawnRule{r.own(), key})
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// At decides an attempt, counted from 0, of an operation.
func (s *Schedule) At(op uint64, attempt uint32) Decision {
	for i := range s.rules {
		r := &s.rules[i]
		if r.fires(s.stream, op, attempt) {
			return r.decide(s.stream, op, attempt)
		}
	}
	return Decision{}
}

func (r *drawnRule) fires(s Stream, op uint64, attempt uint32) bool {
	if op < r.From || r.To != 0 && op >= r.To {
		return false
	}
	if r.Exactly > 0 && attempt == 0 {
		return place(s, r.key, op-r.From, r.To-r.From) < r.Exactly
	}
	if !Hit(s.Draw(r.key, op, attempt, LaneFire), r.RatePPB) {
		return false
	}
	return r.Burst == nil || r.Burst.Bad(s, r.key, r.Burst.epoch(op))
}

func (r *drawnRule) decide(s Stream, op uint64, attempt uint32) Decision {
	draw := func(lane Lane) uint64 { return s.Draw(r.key, op, attempt, lane) }
	return Decision{
		Kind:    r.Kinds[Below(draw(LaneKind), uint64(len(r.Kinds)))],
		Rule:    r.ID,
		Delay:   draw(LaneDelay),
		Cut:     draw(LaneCut),
		Payload: draw(LanePayload),
	}
}
