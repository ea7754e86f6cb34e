package metrics

// Period is a stretch of a load of fixed length: what became of the calls that
// were due in it, or in a closed loop begun. Periods of the same stretch on
// several agents merge in any order to that of the fleet.
type Period struct {
	Outcomes Counts `json:"outcomes,omitempty"` // of its calls
	Latency  Dist   `json:"latency"`            // of its successes, µs, as in Tally
	TTFT     Dist   `json:"ttft"`               // µs, of streams
	Late     Dist   `json:"late"`               // µs that the generator woke behind a due time

	Scheduled int64 `json:"scheduled,omitempty"` // open loop: arrivals due in it
	Sent      int64 `json:"sent,omitempty"`
	Dropped   int64 `json:"dropped,omitempty"`   // open loop: beyond the in-flight cap, or in the pause of a quota
	Completed int64 `json:"completed,omitempty"` // answered in it, whenever they were due
	Succeeded int64 `json:"succeeded,omitempty"` // of these, ok
	InFlight  int64 `json:"in_flight,omitempty"` // most calls open at once, summed over agents
	Callers   int64 `json:"callers,omitempty"`   // closed loop: most callers at work, summed over agents
}

// Merge adds the same stretch of other callers.
func (p *Period) Merge(o *Period) {
	if len(o.Outcomes) > 0 && p.Outcomes == nil {
		p.Outcomes = Counts{}
	}
	for k, n := range o.Outcomes {
		p.Outcomes[k] += n
	}
	p.Latency.Merge(&o.Latency)
	p.TTFT.Merge(&o.TTFT)
	p.Late.Merge(&o.Late)
	p.Scheduled += o.Scheduled
	p.Sent += o.Sent
	p.Dropped += o.Dropped
	p.Completed += o.Completed
	p.Succeeded += o.Succeeded
	p.InFlight += o.InFlight
	p.Callers += o.Callers
}

// Reset empties the period and keeps its memory.
func (p *Period) Reset() {
	old := *p
	*p = Period{Outcomes: old.Outcomes, Latency: old.Latency, TTFT: old.TTFT, Late: old.Late}
	clear(p.Outcomes)
	p.Latency.Reset()
	p.TTFT.Reset()
	p.Late.Reset()
}
