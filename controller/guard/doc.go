// Package guard decides when a run must stop or slow down: stop conditions on
// live data, budgets and rate limits that a whole fleet shares.
//
//	samples of all agents ─▶ Live  ─ Check ─▶ Tripped: the run stops
//	agents ask for work   ─▶ Calls ─ Take  ─▶ a slice of the budget
//	tokens times prices   ─▶ Cost  ─ Over  ─▶ the run stops
//	a refusal for quota   ─▶ Quota ─ Grant ─▶ tokens, or how long to wait
//
// In go observations and requests, each with its time; out come decisions. What
// is done about them (stop injecting, fence, halt) is up to the caller. Nothing
// here does I/O, reads a clock, starts a goroutine or draws a random number:
// time is a duration since the run began, on a monotonic clock of the caller. No
// value is safe for concurrent use: one goroutine owns it.
//
// A stop condition is written METRIC OP LIMIT / WINDOW:
//
//	error_rate > 0.5 / 10s          more than half of the calls of 10 s failed
//	rate_limited_rate >= 20% / 5s   one failure outcome alone
//	p95 > 500ms / 30s               latency of the successes
//
//	METRIC  error_rate, or an outcome and _rate: tool_error_rate, timeout_rate, …;
//	        p50 p90 p95 p99 p999 max of the latency of successes
//	OP      > or >=
//	LIMIT   a rate: 0.25 or 25%; a latency: 500ms, 2s, up to 1h
//	WINDOW  1s to 1h
//
// A limit that can never be passed, or always is, is refused.
package guard
