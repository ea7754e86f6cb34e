package price

// builtinAsOf is the month of the newest model in the table. Prices of older
// models are those listed beside it.
const builtinAsOf = "2026-09"

// builtin holds list prices from Anthropic's published model and pricing pages
// (base input, output, cache hits). Left out on purpose: models whose page says
// "from" or carries a footnote at the price, and every provider whose own price
// page could not be read; a price file fills the gap.
var builtin = map[string]Rate{
	"claude-opus-5-5":   {4, 20, 0.20},
	"claude-opus-5":     {5, 25, 0.50},
	"claude-opus-4-8":   {5, 25, 0.50},
	"claude-opus-4-7":   {5, 25, 0.50},
	"claude-opus-4-6":   {5, 25, 0.50},
	"claude-opus-4-5":   {5, 25, 0.50},
	"claude-opus-4-1":   {15, 75, 1.50},
	"claude-opus-4":     {15, 75, 1.50},
	"claude-sonnet-5-5": {2, 10, 0.20},
	"claude-sonnet-5":   {2, 10, 0.20},
	"claude-sonnet-4-6": {3, 15, 0.30},
	"claude-sonnet-4-5": {3, 15, 0.30},
	"claude-sonnet-4":   {3, 15, 0.30},
	"claude-haiku-4-5":  {1, 5, 0.10},
	"claude-3-5-haiku":  {0.80, 4, 0.08},
}
