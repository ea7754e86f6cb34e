package target

import (
	"ordeal/faultproxy/schedule"
	"ordeal/metrics"
)

// profile is one behaviour of the mock. Times are microseconds.
type profile struct {
	name         string
	base, jitter int64
	tailPPB      schedule.PPB
	tailTenths   int64 // factor of the tail, in tenths
	errorPPB     schedule.PPB
	errors       []metrics.Outcome // equally likely
	capacity     int               // callers at once before overload; 0 = no limit
	validates    bool              // holds arguments against its schema
	tokensIn     int64             // at most; half of the variable part at least
	static       int64             // of them the same in every call
	tokensOut    int64
}

// profiles are the five of RateMyAgent with its figures, in its order. Its mock
// accepted any argument; here the profiles that stand for a sound server
// (healthy, saturating, bloated) refuse what their schema forbids.
var profiles = []profile{
	{name: "healthy", base: 350_000, jitter: 100_000, validates: true, tokensIn: 850, tokensOut: 120},
	{name: "degraded", base: 3_000_000, jitter: 1_000_000, tailPPB: 150_000_000, tailTenths: 22, tokensIn: 850, tokensOut: 120},
	{name: "failing", base: 12_000_000, jitter: 4_000_000, tailPPB: 300_000_000, tailTenths: 30, errorPPB: 350_000_000,
		errors: []metrics.Outcome{metrics.Timeout, metrics.ServerError, metrics.RateLimited}, tokensIn: 850, tokensOut: 120},
	{name: "saturating", base: 300_000, jitter: 50_000, capacity: 4, validates: true, tokensIn: 850, tokensOut: 120},
	{name: "bloated", base: 400_000, jitter: 100_000, validates: true, tokensIn: 4000, static: 3800, tokensOut: 90},
}

type mockTool struct{ name, does string }

var mockTools = []mockTool{
	{"echo", "Returns the query."},
	{"search", "Searches for the query."},
	{"summarize", "Summarizes what is found for the query."},
}

const mockSchema = `{"type":"object","properties":{"query":{"type":"string","description":"What to work on."}},"required":["query"]}`
