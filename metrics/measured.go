package metrics

import (
	"encoding/json"
	"fmt"
	"math"
)

// Effect is what a caveat does to the metrics it names.
type Effect string

const (
	Suppress     Effect = "suppress"     // the value is withheld: null
	Annotate     Effect = "annotate"     // the value stands, qualified
	Inapplicable Effect = "inapplicable" // the question does not apply to this target
)

// Scope tells whether a caveat qualifies single metrics or a whole probe.
type Scope string

const (
	ScopeMetric Scope = "metric"
	ScopeProbe  Scope = "probe"
)

// Caveat is a reason to read a number with care, or not at all. It has no
// severity by design: what it does is its effect.
type Caveat struct {
	ID      string   `json:"id"` // stable, e.g. latency.p99_below_100
	Probe   string   `json:"probe"`
	Metrics []string `json:"metrics"`
	Scope   Scope    `json:"scope"`
	Effect  Effect   `json:"effect"`
	Reason  string   `json:"reason"`
	Remedy  string   `json:"remedy"`
}

// Interval is a 95 % interval in the unit of its value. An end that the sample
// is too small to bound is infinite, and null in JSON.
type Interval struct {
	Lo, Hi float64
}

// MarshalJSON writes [lo, hi], an open end as null.
func (iv Interval) MarshalJSON() ([]byte, error) {
	var ends [2]*float64
	for i, v := range [2]float64{iv.Lo, iv.Hi} {
		if !math.IsInf(v, 0) {
			ends[i] = &v
		}
	}
	return json.Marshal(ends)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (iv *Interval) UnmarshalJSON(data []byte) error {
	var ends []*float64
	if err := json.Unmarshal(data, &ends); err != nil {
		return err
	}
	if len(ends) != 2 {
		return fmt.Errorf("interval of %d ends: want [lo, hi]", len(ends))
	}
	iv.Lo, iv.Hi = math.Inf(-1), math.Inf(1)
	if ends[0] != nil {
		iv.Lo = *ends[0]
	}
	if ends[1] != nil {
		iv.Hi = *ends[1]
	}
	return nil
}

// Measured is one number with its denominator. Value is nil when the number
// was withheld or could not be measured; the caveats then say why. It is never
// zero in place of missing.
type Measured struct {
	Value    any       `json:"value"` // float64, int64, bool, string, list or map; nil = not measured
	Unit     string    `json:"unit,omitempty"`
	N        int64     `json:"n"`
	Interval *Interval `json:"interval"`          // null where there is none
	Caveats  []string  `json:"caveats,omitempty"` // ids
}

// Number returns the value as a float and whether there is one.
func (m Measured) Number() (float64, bool) {
	switch v := m.Value.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	}
	return 0, false
}
