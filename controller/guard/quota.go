package guard

import (
	"math"
	"time"
)

// How a fleet treats a target that refuses for quota. The decreases are TCP's
// way of sharing a line nobody has told the width of; the numbers are chosen for
// a quota that is somewhat below what the fleet sends.
const (
	// DefaultMaxPause bounds what a target may ask for: a run that is told to
	// come back tomorrow is stopped by its conditions, not by its silence.
	DefaultMaxPause = time.Minute

	// When the target names its limit, the fleet keeps 5 % below it: clocks and
	// windows differ, and calls bunch on their way.
	margin = 0.95
	// A named limit that is above twice what was refused is not the reason for
	// the refusal.
	credible = 2

	firstCut = 0.5 // of the measured rate: how far above the limit is unknown
	laterCut = 0.7 // of the rate granted: it is above, but not by far

	// Increase: 5 % per 5 s, once the rate is near the one last refused. Up to
	// there it returns in a straight line. Without that, climbing back from a
	// cut of 0.7 takes 40 s, and a fleet makes 85 % of a limit at the very best.
	step       = 0.05
	stepTime   = 5 * time.Second
	near       = 0.9
	returnTime = 5 * time.Second

	// Without Retry-After the pause is 1 s. A target that refuses within a second
	// of three pauses running is shut rather than crowded; from there the pause
	// doubles.
	plainPause = time.Second
	soon       = time.Second
	crowded    = 3

	minRate = 0.1 // calls/s; a named limit may be lower
	maxRate = 1e9
)

// Signal is a refusal for quota, as one agent saw it.
type Signal struct {
	RetryAfter time.Duration // the wait asked for; 0 = not said
	Limit      int64         // calls per Window; 0 = not said
	Window     time.Duration
	// Age is how long ago the refused call was sent: its latency plus the way of
	// the message here; 0 = just now.
	Age time.Duration
	// Rate is what the fleet sent lately, in calls/s, refused ones included. It
	// counts for the first signal; afterwards the rate granted is known.
	Rate float64
}

// Quota makes one agent's refusal the whole fleet's business.
//
//	open ──Seen──▶ paused ──time──▶ metered ──Seen──▶ paused …
//	 no limit       no tokens        one bucket for the fleet
//
// While open the fleet need not ask. On Seen the caller tells every agent to stop,
// to drop what tokens it holds and to ask from now on; all later calls need one.
// Once the pause is over tokens come from a single bucket, filled at a rate below
// the limit named by the target or, without one, at a rate that is cut on every
// further signal and creeps up between them. A signal about a call that was sent
// before the pause ended is an echo of what the pause is for: it may prolong the
// pause, never cut the rate. Metered is for good: a quota once seen is there.
//
// The bucket starts empty and holds max(1, rate*0.25 s) tokens, so no stretch of
// time T after a pause sees more than rate*T + burst of them granted. Agents that
// find it empty stand in line, see Grant.
//
// Two limits. A target whose own bucket is smaller than what the fleet sends during
// one question to the controller refuses at any rate, so agents that are granted
// several tokens better space them out. And a token a fleet does not use is lost.
type Quota struct {
	maxPause time.Duration
	until    time.Duration // end of the last pause
	limited  bool          // not open
	quick    int           // signals in a row that came soon after a pause

	rate    float64 // calls/s
	mark    float64 // up to here the rate returns quickly
	pull    float64 // by so much per second
	ceiling float64 // named by the target; 0 = none
	probing bool    // nobody knows what was refused: the rate doubles until the next signal
	bucket
	drawn bool // from the bucket, since the pause
	line  line
}

// NewQuota is open. A pause is at most maxPause long; 0 means DefaultMaxPause.
func NewQuota(maxPause time.Duration) *Quota {
	if maxPause <= 0 {
		maxPause = DefaultMaxPause
	}
	return &Quota{maxPause: maxPause}
}

// Limited reports the rate of the fleet, in calls/s, and when the last pause ends
// or ended; ok is false while open.
func (q *Quota) Limited() (rate float64, until time.Duration, ok bool) {
	return q.rate, q.until, q.limited
}

// Seen takes in a refusal that reached the caller now.
func (q *Quota) Seen(now time.Duration, s Signal) {
	q.advance(now)
	echo := q.limited && now-max(s.Age, 0) < q.until
	pause := s.RetryAfter
	if !echo {
		if pause <= 0 {
			pause = q.plain(now)
		}
		q.lower(s)
	}
	if named := s.named(); named > 0 {
		q.ceiling = named
		q.rate = min(q.rate, named)
	}
	q.limited = true
	if pause > 0 {
		q.until = max(q.until, now+min(pause, q.maxPause))
		q.tokens, q.drawn = 0, false
	}
}

// plain is the pause for a target that does not say how long.
func (q *Quota) plain(now time.Duration) time.Duration {
	if !q.limited || now-q.until >= soon {
		q.quick = 0
	} else {
		q.quick++
	}
	pause := plainPause
	for range min(q.quick-crowded, 30) {
		pause *= 2
	}
	return pause
}

// lower sets the rate after a signal that means it. The rate refused is the one
// to return near to.
func (q *Quota) lower(s Signal) {
	refused, cut := q.rate, laterCut
	q.probing = false
	if !q.limited {
		refused, cut = within(s.Rate), firstCut
		q.probing = !(s.Rate > 0)
		if named := s.named(); named > 0 && (!(s.Rate > 0) || named <= credible*s.Rate) {
			refused, cut = named, 1
		}
	}
	q.rate = max(cut*refused, min(minRate, refused))
	q.mark = max(near*refused, q.rate)
	q.pull = (q.mark - q.rate) / returnTime.Seconds()
}

// named is the rate to keep to a limit the target stated, in calls/s; 0 = none.
func (s Signal) named() float64 {
	if s.Limit <= 0 || s.Window <= 0 {
		return 0
	}
	return min(margin*float64(s.Limit)/s.Window.Seconds(), maxRate)
}

// probeRate is where a fleet begins whose rate nobody knows, as when the first
// calls of a run are refused; doubleTime is how long it takes to double.
const (
	probeRate  = 2.0 // calls/s
	doubleTime = time.Second
)

// within makes a rate out of what may be nonsense.
func within(rate float64) float64 {
	if !(rate > 0) {
		return probeRate
	}
	return min(max(rate, minRate), maxRate)
}

// Grant asks for up to want tokens for an agent: n of them, or, when n is 0, how
// long to wait before asking again, a positive number of whole milliseconds.
//
// Agents that find too little in the bucket stand in line in the order in which
// they asked, one place each, and are told the time of their turn; those ahead are
// served first even if they come after. An agent keeps its place until a second
// past its turn. A turn is worth the same for all, and as much more as flowed for an
// agent while it was away, which makes up for the way of a far one. So agents that
// ask for as much as they can get share equally; only where a turn is worth a single
// token does a longer way mean fewer turns. An agent that wants less gets what it
// wants, and what it leaves is not saved for it.
func (q *Quota) Grant(now time.Duration, agent string, want int64) (n int64, wait time.Duration) {
	if want <= 0 {
		return 0, 0
	}
	if !q.limited {
		return want, 0
	}
	q.advance(now)
	place, ahead, away := q.line.ask(agent, now)
	size := min(want, portion(q.rate, q.line.agents(), away))
	due := size
	if settled, ok := q.line.settled(place); ok {
		due = min(want, settled) // what its wait was reckoned for
	} else if place == 0 { // nobody waits: what is there will do
		due = min(want, portion(q.rate, q.line.agents(), 0))
	}
	missing := float64(ahead+due) - q.tokens
	if missing <= 0 { // never in a pause: the bucket is empty
		n = max(due, min(size, int64(q.tokens)-ahead))
		q.line.leave(place, agent, now)
		q.tokens, q.drawn = q.tokens-float64(n), true
		return n, 0
	}
	wait = q.wait(now, missing)
	q.line.stand(place, turn{agent: agent, due: now + wait, size: due})
	return 0, wait
}

// wait is the time until the bucket has gained the missing tokens, at the rate of
// today: rounded up, so that nobody has to come again for a rounding error, and
// bounded like a pause, so that no agent is out of touch for hours.
func (q *Quota) wait(now time.Duration, missing float64) time.Duration {
	const unit = time.Millisecond
	fill := min(max(missing, 0)/q.rate, q.maxPause.Seconds())
	wait := max(0, q.until-now) + time.Duration(math.Ceil(fill*1000))*unit
	return max(unit, (wait+unit-1)/unit*unit)
}

// advance brings rate, bucket and line to the present. Nothing fills or grows
// during a pause.
func (q *Quota) advance(now time.Duration) {
	from := max(q.last, q.until)
	q.last = max(q.last, now)
	q.line.expire(now)
	if !q.limited || now <= from {
		return
	}
	q.grow(min(now-from, q.used(from)).Seconds())
	q.fill(q.rate, (now - from).Seconds())
}

// used is for how long from a time on the rate is in use: an agent waits for its
// turn, or the last one left less than half in the bucket.
func (q *Quota) used(from time.Duration) time.Duration {
	waiting := max(0, q.line.last()-from)
	if !q.drawn {
		return waiting
	}
	return max(waiting, q.untilHalf(q.rate))
}

// grow raises the rate for the seconds in which it was used: a rate that nobody
// uses is not shown to be safe by the silence of the target.
func (q *Quota) grow(seconds float64) {
	if q.probing {
		q.rate = min(q.rate*math.Exp2(seconds/doubleTime.Seconds()), maxRate)
		q.mark = near * q.rate
		if q.ceiling > 0 {
			q.rate = min(q.rate, q.ceiling)
		}
		return
	}
	if q.rate < q.mark {
		back := min(seconds, (q.mark-q.rate)/q.pull)
		q.rate += back * q.pull
		seconds -= back
	}
	q.rate += q.mark * step / stepTime.Seconds() * seconds
	if q.ceiling > 0 {
		q.rate = min(q.rate, q.ceiling)
	}
	q.rate = min(q.rate, maxRate)
}
