package metrics

import (
	"encoding/json"
	"math"
	"testing"
)

func TestIntervalJSON(t *testing.T) {
	for _, tt := range []struct {
		iv   Interval
		want string
	}{
		{Interval{0.25, 0.5}, `[0.25,0.5]`},
		{Interval{0.25, math.Inf(1)}, `[0.25,null]`},
		{Interval{math.Inf(-1), 0.5}, `[null,0.5]`},
	} {
		got, err := json.Marshal(tt.iv)
		if err != nil || string(got) != tt.want {
			t.Errorf("Marshal(%v) = %s, %v; want %s", tt.iv, got, err, tt.want)
		}
		var back Interval
		if err := json.Unmarshal(got, &back); err != nil || back != tt.iv {
			t.Errorf("Unmarshal(%s) = %v, %v; want %v", got, back, err, tt.iv)
		}
	}
}
