package guard

// Calls is a hard cap on the calls of a fleet. Agents take slices of it and may
// give back what they did not use; what is not given back counts as spent,
// whether or not its agent lives to say so. The cap is therefore never exceeded,
// as long as an agent makes no call without a token and returns none it used.
//
// A slice is at most 1/(2*agents) of what is left, and at least one call: agents
// of equal speed run dry within a few calls of each other, and an agent that is
// lost takes little along.
type Calls struct {
	left int64
	held map[string]int64 // agent → tokens taken and not returned
}

// NewCalls is a budget of limit calls, for the agents known so far; others join
// when they first take.
func NewCalls(limit int64, agents ...string) *Calls {
	c := &Calls{left: max(limit, 0), held: map[string]int64{}}
	for _, a := range agents {
		c.held[a] = 0
	}
	return c
}

// Take grants up to want calls; left reports whether more could be granted after
// it. Without left the budget is spent but for what other agents may still return.
func (c *Calls) Take(agent string, want int64) (granted int64, left bool) {
	held := c.held[agent]
	c.held[agent] = held // counts among the agents from now on
	slice := max(1, c.left/(2*int64(len(c.held))))
	granted = max(0, min(want, slice, c.left))
	c.held[agent] = held + granted
	c.left -= granted
	return granted, c.left > 0
}

// Return gives back n unused calls. What the agent does not hold is ignored, so
// a return that comes after Lost changes nothing.
func (c *Calls) Return(agent string, n int64) {
	n = min(n, c.held[agent])
	if n <= 0 {
		return
	}
	c.held[agent] -= n
	c.left += n
}

// Lost takes an agent out of the reckoning, dead or done: what it holds is spent.
func (c *Calls) Lost(agent string) { delete(c.held, agent) }

// Left is the number of calls not handed out.
func (c *Calls) Left() int64 { return c.left }
