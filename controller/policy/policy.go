package policy

import (
	_ "embed"
	"fmt"
)

//go:embed default.yaml
var defaultYAML []byte

// Mode says what decides a check.
type Mode string

const (
	// ByInterval decides on the 95 % interval. It is the default.
	ByInterval Mode = "interval"
	// ByPoint decides on the observed value alone, which reproduces the
	// decisions and scores of RateMyAgent to the last digit, the chance
	// failures of a flawless target included.
	ByPoint Mode = "point"
)

// Policy is what reliable enough means for one project. Parse and Default
// return valid ones; the JSON form has sorted keys and identifies a policy.
type Policy struct {
	Name        string             `json:"name"`
	Description string             `json:"description,omitempty"`
	Thresholds  map[string]float64 `json:"thresholds"` // by key, in the unit of the key
	Weights     map[string]float64 `json:"weights"`    // by dimension; any scale, only ratios count
	// PassScore is the least score that passes, FailCap the highest a run with
	// a failed check may have, AbsoluteFailCap the same after a failed absolute
	// check; all 0..100.
	PassScore       float64 `json:"pass_score"`
	FailCap         float64 `json:"fail_cap"`
	AbsoluteFailCap float64 `json:"absolute_fail_cap"`
	// Strict asks for proof: an unproven check leaves the run without a verdict.
	Strict   bool `json:"strict"`
	Decision Mode `json:"decision"`
}

// What a file that leaves the key out gets.
const (
	defaultPassScore       = 75
	defaultFailCap         = 89
	defaultAbsoluteFailCap = 49
)

func defaultWeights() map[string]float64 {
	return map[string]float64{"latency": 20, "cost": 15, "concurrency": 15, "contract": 15, "behavior": 35}
}

// Default returns a new copy of the built-in policy.
func Default() *Policy {
	p, _, err := Parse("default.yaml", defaultYAML)
	if err != nil {
		panic(fmt.Sprintf("policy: the embedded default is invalid: %v", err))
	}
	return p
}

// DefaultYAML returns the built-in policy as a commented file to start from.
func DefaultYAML() []byte { return append([]byte(nil), defaultYAML...) }
