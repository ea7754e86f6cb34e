package schedule

// Ideal is what a caller that only retries gets from a target that never fails
// by itself, on one drawn schedule. A real caller is judged against it, not
// against the mean of all schedules: half of all draws are worse than the mean.
type Ideal struct {
	Operations int64 `json:"operations"`
	Disrupted  int64 `json:"disrupted"` // first attempt faulted
	Recovered  int64 `json:"recovered"` // disrupted, and a retry was clean
	Attempts   int64 `json:"attempts"`  // retries included
	// ByKind counts injected faults over all attempts.
	ByKind map[Kind]int64 `json:"by_kind,omitempty"`
}

// Replay runs the ideal caller over the operations from <= op < to, each tried
// until one attempt is clean or retries are used up.
func (s *Schedule) Replay(from, to uint64, retries uint32) Ideal {
	sum := Ideal{ByKind: map[Kind]int64{}}
	for op := from; op < to; op++ {
		sum.Operations++
		for attempt := uint32(0); ; attempt++ {
			sum.Attempts++
			kind := s.At(op, attempt).Kind
			if kind == None {
				if attempt > 0 {
					sum.Recovered++
				}
				break
			}
			sum.ByKind[kind]++
			if attempt == 0 {
				sum.Disrupted++
			}
			if attempt == retries {
				break
			}
		}
	}
	return sum
}

// RecoveryRate returns recovered over disrupted operations; ok is false when
// none was disrupted.
func (i Ideal) RecoveryRate() (rate float64, ok bool) {
	if i.Disrupted == 0 {
		return 0, false
	}
	return float64(i.Recovered) / float64(i.Disrupted), true
}

// Add returns the sum of two disjoint ranges.
func (i Ideal) Add(j Ideal) Ideal {
	sum := Ideal{
		Operations: i.Operations + j.Operations,
		Disrupted:  i.Disrupted + j.Disrupted,
		Recovered:  i.Recovered + j.Recovered,
		Attempts:   i.Attempts + j.Attempts,
		ByKind:     map[Kind]int64{},
	}
	for _, part := range []Ideal{i, j} {
		for kind, n := range part.ByKind {
			sum.ByKind[kind] += n
		}
	}
	return sum
}

// Floor returns the mean recovery of an ideal caller under independent faults,
// among disrupted operations: 1 - rate^retries. It is a mean over schedules;
// what one schedule allows is Replay's to say.
func Floor(rate PPB, retries uint32) float64 {
	lost := 1.0
	for range retries {
		lost = float64(lost * rate.Float()) // the conversion forbids fusing: same bits everywhere
	}
	return 1 - lost
}

// CallsFor returns how many operations it takes to expect the given number of
// disrupted ones at a rate; 0 when the rate is 0.
func CallsFor(disrupted uint64, rate PPB) uint64 {
	if rate == 0 {
		return 0
	}
	return (disrupted*uint64(One) + uint64(rate) - 1) / uint64(rate)
}
