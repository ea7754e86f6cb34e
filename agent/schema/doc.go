// Package schema reads the JSON Schema of one tool and derives what a probe
// needs from it: a valid set of arguments, the minimal ways to violate it, and
// the verdict on any document.
//
// In: the raw input or output schema as the server sent it. Out: a compiled
// [Schema], arguments with the origin of each value, cases with a verdict each,
// static issues, a smaller form of a case that should have been refused.
//
//	raw ─ Compile ─▶ Schema ─┬─ Synthesize ─▶ baseline ─ Cases ─▶ Set ─▶ (sent by the probe) ─ Shrink
//	raw ─ Audit ─▶ []Issue   └─ Validate, ValidateOutput
//
// Never happens here: no call to a server, no fetch of a $ref (network and file
// references are refused by name), no random number, no output that depends on
// map order, no panic and no unbounded work whatever the schema says. A schema
// is hostile input: its size, its depth, the work per verdict and the work per
// call are bounded, and a verdict that would cost more is undecided, not wrong.
//
// Three answers exist for a document: valid, refused (with a place and a
// reason), and undecided. Undecided documents are never counted as forbidden.
// A pattern that Go's linear-time regular expressions cannot express (look
// around, back references, more than 1000 repeats) makes only those verdicts
// undecided that really depend on it; see [Schema.Limits].
package schema
