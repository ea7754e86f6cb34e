package result

import "ordeal/metrics"

// Load is a load test: what was asked for, what happened over time, and where the
// limit is. Times are in seconds from the start of the load; latencies in seconds.
type Load struct {
	Model    string     `json:"model"`              // closed, open
	Arrivals string     `json:"arrivals,omitempty"` // open: constant, poisson
	Profile  []LoadRamp `json:"profile"`            // of the last level
	// WarmupS and DrainS are cut off the start and, after the last arrival, the end:
	// numbers are about MeasuredS between them.
	WarmupS   float64 `json:"warmup_s"`
	MeasuredS float64 `json:"measured_s"`
	DrainS    float64 `json:"drain_s"`

	Levels   []LoadLevel  `json:"levels"` // one, or those of a search for the knee, in order
	PeriodS  float64      `json:"period_s"`
	Periods  []LoadPeriod `json:"periods"` // of the last level
	Steps    []LoadStep   `json:"steps,omitempty"`
	Knee     *Knee        `json:"knee,omitempty"`
	SLO      string       `json:"slo,omitempty"` // as it was asked for
	Sessions LoadSessions `json:"sessions"`
}

// LoadRamp is a stretch of the profile, in callers or arrivals per second.
type LoadRamp struct {
	ForS float64 `json:"for_s"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// LoadLevel is one load that was tried.
type LoadLevel struct {
	Stage     string           `json:"stage"`
	Asked     float64          `json:"asked"`    // peak: callers, or arrivals per second
	Offered   metrics.Measured `json:"offered"`  // calls/s due in the measured part; null in a closed loop
	Achieved  metrics.Measured `json:"achieved"` // calls/s answered well
	Scheduled int64            `json:"scheduled"`
	Sent      int64            `json:"sent"`
	Dropped   int64            `json:"dropped"`
	Sustained *bool            `json:"sustained"` // open loop: was the asked rate sent and answered; null in a closed loop or unknown
	Outcomes  map[string]int64 `json:"outcomes"`
	P50       metrics.Measured `json:"p50_s"`
	P95       metrics.Measured `json:"p95_s"`
	P99       metrics.Measured `json:"p99_s"`
	ErrorRate metrics.Measured `json:"error_rate"`
	Met       *bool            `json:"met"` // the SLO; null without one, or when the generator was the limit
	Why       string           `json:"why"` // one line: what decided
	Confirms  bool             `json:"confirms,omitempty"`
	Generator LoadGenerator    `json:"generator"`
}

// LoadGenerator is what the agents say about themselves.
type LoadGenerator struct {
	Saturated bool   `json:"saturated"`
	Reason    string `json:"reason,omitempty"`
	// MoreAgents is how many more agents like these would keep up; 0 unknown.
	MoreAgents int      `json:"more_agents,omitempty"`
	CPU        float64  `json:"cpu_cores"` // the busiest agent's
	GCPauseS   float64  `json:"gc_pause_s"`
	LateP50    *float64 `json:"late_p50_s"` // woken behind due; null when nothing was timed
	LateP99    *float64 `json:"late_p99_s"`
}

// LoadPeriod is a stretch of PeriodS seconds. Its calls are those that were due in
// it, or in a closed loop begun.
type LoadPeriod struct {
	FromS     float64          `json:"from_s"`
	Measured  bool             `json:"measured"` // false: warm-up or drain
	Asked     float64          `json:"asked"`    // mean of the profile: callers, or arrivals per second
	Scheduled int64            `json:"scheduled"`
	Sent      int64            `json:"sent"`
	Dropped   int64            `json:"dropped"`
	Completed int64            `json:"completed"` // answered in it
	Succeeded int64            `json:"succeeded"`
	InFlight  int64            `json:"in_flight"` // most at once
	Callers   int64            `json:"callers"`
	Outcomes  map[string]int64 `json:"outcomes"`
	// Latency of its successes, and whose counts make the percentiles; empty without.
	Histogram *Histogram `json:"histogram,omitempty"`
	P50S      *float64   `json:"p50_s"`
	P95S      *float64   `json:"p95_s"`
	P99S      *float64   `json:"p99_s"`
	MaxS      *float64   `json:"max_s"`
	LateP99S  *float64   `json:"late_p99_s"`
}

// LoadStep is a step of a workload; a scenario as a whole has an empty Step.
type LoadStep struct {
	Scenario  string           `json:"scenario"`
	Step      string           `json:"step,omitempty"`
	Outcomes  map[string]int64 `json:"outcomes"`
	P50       metrics.Measured `json:"p50_s"`
	P95       metrics.Measured `json:"p95_s"`
	P99       metrics.Measured `json:"p99_s"`
	ErrorRate metrics.Measured `json:"error_rate"`
	Histogram *Histogram       `json:"histogram,omitempty"` // of a step's successes
}

// Knee is the highest load that meets the SLO.
type Knee struct {
	// Rate is the highest arrival rate that was confirmed; null when not even the
	// lowest that was tried met the SLO.
	Rate          *float64 `json:"rate"`
	Lo            *float64 `json:"lo"` // highest that met it
	Hi            *float64 `json:"hi"` // lowest that did not; null: none was found
	Confirmations int      `json:"confirmations"`
	Met           int      `json:"confirmations_met"`
	Ended         string   `json:"ended"` // why the search stopped
}

// LoadSessions counts those of the target, where it has any.
type LoadSessions struct {
	Opened   int64 `json:"opened"`   // for the load; each is closed at the end of the run
	Reopened int64 `json:"reopened"` // of these, in place of lost ones
}
