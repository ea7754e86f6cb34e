package lead

import "ordeal/controller/guard"

// blocks is in how many pieces a budget is reserved: what is reserved and not
// handed out when a controller dies is lost, at most one block.
const blocks = 20

// budget is a hard cap on the calls of a run, also over the death of controllers:
// what may be handed out is written down before it is.
//
//	0 ── granted ── reserved ── limit
//	     to agents   in the record
type budget struct {
	calls    *guard.Calls
	limit    int64
	granted  int64
	reserved int64
	asked    int64 // reservation under way
	reserve  func(total int64)
}

// newBudget goes on behind the calls that earlier controllers may have granted.
func newBudget(limit, earlier int64) *budget {
	earlier = min(max(earlier, 0), limit)
	return &budget{calls: guard.NewCalls(limit - earlier), limit: limit, granted: earlier, reserved: earlier, asked: earlier}
}

// next is what should be reserved now.
func (b *budget) next() int64 { return min(b.limit, b.granted+b.block()) }

func (b *budget) block() int64 { return max(1, b.limit/blocks) }

// take grants up to want calls; 0 when the reservation has to be stored first.
func (b *budget) take(agent string, want int64) int64 {
	var n int64
	if want = min(want, b.room()); want > 0 {
		n, _ = b.calls.Take(agent, want)
	}
	b.granted += n
	if next := b.next(); b.room() <= b.block()/2 && next > b.asked {
		b.asked = next
		b.reserve(next)
	}
	return n
}

// room is what can be granted at once.
func (b *budget) room() int64 { return b.reserved - b.granted }

// giveBack takes unused calls back.
func (b *budget) giveBack(agent string, n int64) {
	before := b.calls.Left()
	b.calls.Return(agent, n)
	b.granted -= b.calls.Left() - before
}

// stored takes note that a reservation is in the record.
func (b *budget) stored(total int64) { b.reserved = max(b.reserved, min(total, b.limit)) }
