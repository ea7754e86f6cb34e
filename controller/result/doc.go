// Package result is the result document: schema version 1, the one source
// every other format renders from.
//
// Stable: the names of metrics, check keys, finding ids, outcome and fault
// kinds, caveat ids. It holds data only; nothing here measures or judges.
package result
