package guard

import (
	"slices"
	"time"
)

const (
	grace  = time.Second     // an agent may be so late for its turn
	active = 2 * time.Second // an agent that did not ask for so long, and does not wait, has no share
)

// turn is a place in the line: the agent comes back when it is due.
type turn struct {
	agent string
	due   time.Duration
	size  int64 // tokens meant for it
}

// visit is what is known of an agent that shares the bucket.
type visit struct {
	left   time.Duration // when it last got tokens, or first asked
	asked  time.Duration // last time
	waited time.Duration // for its turn since then; lateness is not waiting
}

// line keeps the order in which agents that found the bucket empty get tokens. It
// is as long as the fleet at most.
type line struct {
	turns  []turn
	visits map[string]visit
	swept  time.Duration
}

// ask notes that an agent asks now. It returns its place, the tokens meant for those
// ahead, and how long it was away since it last got tokens, waiting left out. Now
// and then it forgets the agents that stopped asking.
func (l *line) ask(agent string, now time.Duration) (place int, ahead int64, away time.Duration) {
	if l.visits == nil {
		l.visits = map[string]visit{}
	}
	v, known := l.visits[agent]
	if !known {
		v.left = now
	}
	place, ahead = l.place(agent)
	if place < len(l.turns) {
		v.waited += min(now, l.turns[place].due) - v.asked
	}
	v.asked = now
	l.visits[agent] = v
	if now-l.swept >= active {
		l.sweep(now)
	}
	return place, ahead, now - v.left - v.waited
}

func (l *line) sweep(now time.Duration) {
	l.swept = now
	waiting := make(map[string]bool, len(l.turns))
	for _, t := range l.turns {
		waiting[t.agent] = true
	}
	for a, v := range l.visits {
		if now-v.asked >= active && !waiting[a] {
			delete(l.visits, a)
		}
	}
}

// agents is the number of those that share the bucket.
func (l *line) agents() int { return len(l.visits) }

// place is where an agent stands, at the end when it is new, and the tokens meant
// for those ahead of it.
func (l *line) place(agent string) (i int, ahead int64) {
	for i, t := range l.turns {
		if t.agent == agent {
			return i, ahead
		}
		ahead += t.size
	}
	return len(l.turns), ahead
}

// settled is the size of the turn at a place; none yet at the end of the line.
func (l *line) settled(place int) (size int64, ok bool) {
	if place == len(l.turns) {
		return 0, false
	}
	return l.turns[place].size, true
}

// stand puts a turn at its place.
func (l *line) stand(place int, t turn) {
	if place == len(l.turns) {
		l.turns = append(l.turns, t)
		return
	}
	l.turns[place] = t
}

// leave ends an agent's visit with tokens.
func (l *line) leave(place int, agent string, now time.Duration) {
	l.visits[agent] = visit{asked: now, left: now}
	if place < len(l.turns) {
		l.turns = slices.Delete(l.turns, place, place+1)
	}
}

// last is when the last turn is due; 0 with nobody in line.
func (l *line) last() (due time.Duration) {
	for _, t := range l.turns {
		due = max(due, t.due)
	}
	return due
}

// expire drops the turns nobody came for.
func (l *line) expire(now time.Duration) {
	l.turns = slices.DeleteFunc(l.turns, func(t turn) bool { return now > t.due+grace })
}
