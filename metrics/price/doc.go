// Package price turns token counts into money. In goes a model id and, if the
// user has one, a price file; out comes a Rate, or the plain statement that no
// rate is known. A rate is never guessed, never taken from a similar model and
// never fetched: a wrong one ends in somebody's budget.
//
// # Price file
//
// YAML or JSON (JSON is read as the YAML it is). All prices are US dollars per
// 10^6 tokens.
//
//	as_of: "2026-11-05"          # optional, shown beside every cost
//	models:
//	  gpt-4o-mini:
//	    input: 0.15              # required, 0 or more
//	    output: 0.60             # required, 0 or more
//	    cached_input: 0.075      # optional; without it cached input costs as much as input
//	  my-own-model: {input: 0, output: 0}
//
// An unknown key, a missing or negative price and a model given twice are
// errors, all reported at once with their lines.
//
// # Which entry applies
//
// The longest entry that is the model id itself, or the model id without a date
// at its end: -20251001, -2024-07-18 or @20251001. So claude-haiku-4-5 prices
// claude-haiku-4-5-20251001, and an entry for the dated id comes before it. No
// other prefix counts: gpt-4o does not price gpt-4o-mini, claude-opus-5 does not
// price claude-opus-5-5. Ids are compared as written, in lower case.
//
// # What is not in it
//
// Batch and long-context rates, cache writes (billed above the input rate by
// some providers), taxes and discounts. Cost is therefore a list price for plain
// calls.
package price
