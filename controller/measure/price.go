package measure

import "ordeal/metrics/price"

// price of the scanned model and where it comes from: the flags of the scan
// (override), a price table (table), or nowhere (empty). The flags know no price
// of cached input, so it costs as much as input.
func (in *Input) price() (p price.Rate, source string) {
	s := in.Spec
	if s.PriceIn > 0 || s.PriceOut > 0 {
		return price.Rate{Input: s.PriceIn, Output: s.PriceOut, CachedInput: s.PriceIn}, "override"
	}
	if m, ok := price.First(s.Target.Model, in.Prices...); ok {
		return m.Rate, "table"
	}
	return price.Rate{}, ""
}
