package lead

import "time"

// Sure reports whether this controller leads the run at this moment, as far as
// it can know: see the package's doc. Whoever acts on the answer later than now
// must carry the generation along. While the server has closed the connection and
// this side has not noticed, it may be true for one that was replaced; what it
// says then reaches nobody.
func (l *Leader) Sure() bool { return l.left() > 0 }

// left is how long the lead is certain from now on if nothing is heard any more;
// 0 or less when it is not certain now.
//
// No lock is held while the bus is asked: nats.go holds its own for as long as it
// makes a connection. The clock is read last, when all else is known.
func (l *Leader) left() time.Duration {
	l.mu.Lock()
	over, sent, link, ttl := l.over, l.sent, l.link, l.record.TTL
	l.mu.Unlock()
	if over || sent.IsZero() || !l.stands(link) {
		return 0
	}
	return ttl - time.Since(sent)
}

// stands reports whether the connection is the one it was after so many
// reconnects. These are read last: a connection that was lost and is back shows.
func (l *Leader) stands(link uint64) bool {
	return l.opt.Bus.Connected() && l.opt.Bus.Reconnects() == link
}

// wake lets the keeper look again what is due.
func (l *Leader) wake() {
	select {
	case l.poke <- struct{}{}:
	default: // it will
	}
}
