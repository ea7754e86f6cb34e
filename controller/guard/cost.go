package guard

import "math"

// Cost is a money budget in USD, fed with the price of each finished call. A
// call is known to cost something only when it is over, so the budget may be
// overshot by what is in flight when it runs out; it is a stop, not a cap.
type Cost struct {
	limit, spent float64
}

// NewCost is a budget of limit USD.
func NewCost(limit float64) *Cost { return &Cost{limit: limit} }

// Spend adds a price, at least 0. One that is not a number ends the budget:
// nobody can say what more of it would cost.
func (c *Cost) Spend(usd float64) {
	if math.IsNaN(usd) {
		usd = math.Inf(1)
	}
	c.spent += max(usd, 0)
}

// Over reports that nothing of the budget is left.
func (c *Cost) Over() bool { return !(c.spent < c.limit) }

// Spent is the sum so far, in USD.
func (c *Cost) Spent() float64 { return c.spent }
