// Package workload says what each operation of a mix calls.
//
// In goes a wire.Workload once, then the number of an operation; out come its
// calls with their arguments, one after the other. Nothing here calls, waits or
// counts time. What an operation draws depends on the seed and its number alone,
// so any number of agents, in any order, makes the same operations; only the
// number of the caller (user), what a target answered and now_ms are not drawn.
//
// Use, with one Plan for a unit and one Run and Steps for a caller:
//
//	run, steps := plan.NewRun(), plan.NewSteps()
//	run.Start(op, user)                        // for each operation
//	for run.Next() {                           // the next call is in run.Call
//		wait(run.Wait)                     // 0 before the first
//		x := call(run.Tool, run.Args, run.Keep) // Args are overwritten by Next
//		if x.Ok() {
//			if err := run.Take(x.Structured, x.Text); err != nil { // a *Miss
//				x.Outcome, x.Message = metrics.InvalidResponse, err.Error()
//			}
//		}
//		steps.Add(run.ID, x.Outcome, x.Latency)
//		if last = x.Outcome; last != metrics.OK { break }
//	}
//	steps.Add(run.Whole, last, sinceDue)       // the operation as a whole
//	result.Steps = steps.Tallies()             // after merging those of all callers
//
// # Templates
//
// In every string value of a step's arguments, at any depth but not in names,
// ${...} stands for a value and $${ for the two characters. A string that is
// nothing but one ${...} becomes the value with its JSON type; inside a longer
// string a value is escaped text, an object or list its JSON.
//
//	op                       number of the operation, from 0
//	op_id                    mark of the operation, "ordeal-" and 16 hex digits
//	seq                      number that no other call of the run has
//	user                     number of the caller
//	uuid                     version 4
//	int(a,b)                 whole number from a to b, both included
//	float(a,b)               number from a up to b
//	normal(mean,sd)          with as many decimals as its arguments are written with
//	string(n)                n letters and digits
//	choice(a|b|c)            one of them; 1, true, null and "1" as JSON, else text
//	words(n)                 text of n words, each one token of the o200k and cl100k vocabularies
//	tokens(mean,sd,min,max)  text of a normally distributed length in tokens, clipped
//	text(p50,p95)            text of a log-normal length in tokens with these percentiles
//	now_ms                   milliseconds since 1970: the one that differs from run to run
//	FEEDER, FEEDER.COLUMN    of the row that the operation takes
//	VARIABLE                 what an earlier step extracted
//
// tokens and text take FEEDER or FEEDER.COLUMN as a last argument: the text then
// begins at a drawn row and goes on through the rows after it until it is long
// enough, at 4 bytes a token.
//
// # Extraction
//
// A JSON pointer (RFC 6901) into the structured content of the answer, or
// without one into its text, which then has to be JSON; "text:" and a regular
// expression take its first group, or the whole match, out of the text.
package workload
