package probe

import (
	"slices"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// periods are Result.Periods in the making. A nil one keeps none. Calls are counted
// in stretches of the length that was asked for; where there are more of these than
// a result holds, every two periods become one, as often as it takes.
type periods struct {
	length time.Duration

	mu    sync.Mutex
	shift uint // a period holds 1<<shift stretches
	all   []metrics.Period
}

func newPeriods(u *wire.Unit) *periods {
	if u.Load.Period <= 0 {
		return nil
	}
	return &periods{length: u.Load.Period}
}

// index of the stretch that a time is in.
func (p *periods) index(at time.Duration) int { return int(max(at, 0) / p.length) }

// at is the period of a stretch. mu is held.
func (p *periods) at(i int) *metrics.Period {
	for i>>p.shift >= wire.MaxPeriods {
		p.double()
	}
	for len(p.all) <= i>>p.shift {
		p.all = append(p.all, metrics.Period{})
	}
	return &p.all[i>>p.shift]
}

// double makes every two periods one.
func (p *periods) double() {
	for i := range p.all {
		if i%2 == 0 {
			p.all[i/2] = p.all[i]
			continue
		}
		add(&p.all[i/2], &p.all[i])
	}
	p.all = p.all[:(len(p.all)+1)/2]
	p.shift++
}

// add merges what the same callers did at another time: of crests, which only
// agents add up, the highest stays.
func add(into, o *metrics.Period) {
	inFlight, callers := max(into.InFlight, o.InFlight), max(into.Callers, o.Callers)
	into.Merge(o)
	into.InFlight, into.Callers = inFlight, callers
}

// merge adds what one goroutine has counted.
func (p *periods) merge(i int, o *metrics.Period) {
	p.mu.Lock()
	defer p.mu.Unlock()
	add(p.at(i), o)
}

// seal fills up to the end of a load and returns them all, and their length.
func (p *periods) seal(length time.Duration) ([]metrics.Period, time.Duration) {
	if p == nil {
		return nil, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if length > 0 {
		p.at(p.index(length - 1))
	}
	return p.all, p.length << p.shift
}

// stay is a stretch in which a caller of a closed loop was at work, its last call
// included.
type stay struct{ from, to time.Duration }

// crest enters into each period the most callers that were at work at once. Without
// think time each of them has a call open.
func (p *periods) crest(stays []stay, thinking bool) {
	if p == nil || len(stays) == 0 {
		return
	}
	type move struct {
		at time.Duration
		by int64
	}
	moves := make([]move, 0, 2*len(stays))
	for _, s := range stays {
		moves = append(moves, move{s.from, 1}, move{s.to, -1})
	}
	slices.SortFunc(moves, func(a, b move) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return int(a.by - b.by) // who leaves makes room first
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	var now int64
	last := 0
	see := func(i int) {
		into := p.at(i)
		if into.Callers = max(into.Callers, now); !thinking {
			into.InFlight = into.Callers
		}
	}
	for _, m := range moves {
		for i := p.index(m.at); last < i; {
			last++
			see(last)
		}
		now += m.by
		see(last)
	}
}

// ledger is what one goroutine has counted for the period it is in, so that calls
// meet no lock. The zero value keeps nothing.
type ledger struct {
	periods  *periods
	sends    bool // its calls count as sent: no pacer does that
	due      frame
	counted  metrics.Period
	outcomes [outcomeSlots]int64
	dirty    bool

	end                  frame
	completed, succeeded int64
}

// outcomeSlots has room for every outcome.
const outcomeSlots = 16

// frame is the bounds of a period, which saves a division per call.
type frame struct {
	index    int
	from, to time.Duration
}

func (f *frame) holds(at time.Duration) bool { return at >= f.from && at < f.to }

func (p *periods) frame(at time.Duration) frame {
	i := p.index(at)
	return frame{i, time.Duration(i) * p.length, time.Duration(i+1) * p.length}
}

// turn makes counted that of the period of a time.
func (l *ledger) turn(at time.Duration) {
	if !l.due.holds(at) {
		l.flushCounted()
		l.due = l.periods.frame(at)
	}
	l.dirty = true
}

// book counts a call that was due, or begun, at a time, was sent late by so much,
// and ended at another time.
func (l *ledger) book(x *metrics.Exchange, at, late, ended time.Duration) {
	if l.periods == nil {
		return
	}
	l.turn(at)
	l.outcomes[x.Outcome%outcomeSlots]++
	if l.sends {
		l.counted.Sent++
	}
	if x.Ok() {
		l.counted.Latency.Record(int64((x.Latency + late) / time.Microsecond))
		if x.TTFT > 0 {
			l.counted.TTFT.Record(int64(x.TTFT / time.Microsecond))
		}
	}
	if !x.Outcome.Measured() {
		return
	}
	if !l.end.holds(ended) {
		l.flushEnded()
		l.end = l.periods.frame(ended)
	}
	l.completed++
	if x.Ok() {
		l.succeeded++
	}
}

// arrive counts an arrival of an open loop, after which so many calls are open.
func (l *ledger) arrive(due, woken time.Duration, sent bool, open int64) {
	if l.periods == nil {
		return
	}
	l.turn(due)
	in := &l.counted
	in.Scheduled++
	if sent {
		in.Sent++
	} else {
		in.Dropped++
	}
	in.Late.Record(max(0, (woken - due).Microseconds()))
	in.InFlight = max(in.InFlight, open)
}

func (l *ledger) flushCounted() {
	if !l.dirty {
		return
	}
	for o, n := range l.outcomes {
		if n > 0 {
			if l.counted.Outcomes == nil {
				l.counted.Outcomes = metrics.Counts{}
			}
			l.counted.Outcomes[metrics.Outcome(o)] = n
		}
	}
	l.periods.merge(l.due.index, &l.counted)
	l.counted.Reset()
	l.outcomes, l.dirty = [outcomeSlots]int64{}, false
}

func (l *ledger) flushEnded() {
	if l.completed > 0 {
		l.periods.merge(l.end.index, &metrics.Period{Completed: l.completed, Succeeded: l.succeeded})
	}
	l.completed, l.succeeded = 0, 0
}

// flush adds all that was counted to the unit's periods.
func (l *ledger) flush() {
	if l.periods != nil {
		l.flushCounted()
		l.flushEnded()
	}
}
