package metrics

import "time"

// Counts holds one counter per outcome.
type Counts map[Outcome]int64

// Total is the sum over all outcomes that say something about the target.
func (c Counts) Total() int64 {
	var n int64
	for o, k := range c {
		if o.Measured() {
			n += k
		}
	}
	return n
}

// Named holds the counts that are not 0 by the name of their outcome.
func (c Counts) Named() map[string]int64 {
	out := map[string]int64{}
	for o, n := range c {
		if n > 0 {
			out[o.String()] = n
		}
	}
	return out
}

// Tally is what a set of attempts looked like. Tallies of disjoint sets merge
// in any order to the tally of their union.
type Tally struct {
	Outcomes  Counts           `json:"outcomes"`
	Kinds     map[string]int64 `json:"kinds,omitempty"`   // failures by error kind (Outcome.Kind)
	Faults    map[string]int64 `json:"faults,omitempty"`  // injected faults by kind
	Delivered int64            `json:"delivered"`         // attempts that got any answer
	ByText    int64            `json:"by_text,omitempty"` // outcomes decided by text
	Notes     map[string]int64 `json:"notes,omitempty"`   // protocol findings by text
	Errors    map[string]int64 `json:"errors,omitempty"`  // error excerpts by text, at most MaxTexts
	Codes     map[int]int64    `json:"codes,omitempty"`   // JSON-RPC error codes
	Statuses  map[int]int64    `json:"statuses,omitempty"`

	Latency    Dist `json:"latency"`     // successes, µs: from the intended start in open loop, else service time
	Service    Dist `json:"service"`     // successes, µs: service time
	Failed     Dist `json:"failed"`      // failures except timeouts, µs
	TimedOut   Dist `json:"timed_out"`   // timeouts, µs: censored samples
	Late       Dist `json:"late"`        // send time minus intended time, µs (open loop)
	TTFT       Dist `json:"ttft"`        // µs
	Gap        Dist `json:"gap"`         // inter-token gap, µs
	ServerTime Dist `json:"server_time"` // µs
	ClientTime Dist `json:"client_time"` // µs

	Usage     int64 `json:"usage"` // successes that reported token usage
	TokensIn  Dist  `json:"tokens_in"`
	TokensOut Dist  `json:"tokens_out"`
	CachedIn  int64 `json:"cached_in"`
	Truncated int64 `json:"truncated,omitempty"`
	BytesIn   int64 `json:"bytes_in"`
	BytesOut  int64 `json:"bytes_out"`

	OutputChecked int64 `json:"output_checked,omitempty"` // answers checked against their outputSchema
	OutputInvalid int64 `json:"output_invalid,omitempty"` // those that broke it

	Quota  QuotaSeen `json:"quota"`
	Window Window    `json:"window"`
}

// QuotaSeen is the evidence of a quota.
type QuotaSeen struct {
	Seen          map[string]int64 `json:"seen,omitempty"` // where → how often
	Limit         int64            `json:"limit,omitempty"`
	WindowUS      int64            `json:"window_us,omitempty"`
	MaxRetryAfter int64            `json:"max_retry_after_us,omitempty"`
	WaitedUS      int64            `json:"waited_us,omitempty"` // load slowed down for that long
	Waits         int64            `json:"waits,omitempty"`
}

// Window sums the steady part of a load level: what each worker completed
// while every worker had work, and how long it took. Workers is the number of
// the level's last worker that had work, counted from 1, so units that one
// worker works one after the other stay one worker. The rate of the level is
// Completed / BusyUS * Workers.
type Window struct {
	Workers   int64 `json:"workers,omitempty"`
	Completed int64 `json:"completed,omitempty"`
	Succeeded int64 `json:"succeeded,omitempty"`
	BusyUS    int64 `json:"busy_us,omitempty"`    // summed over workers
	LongestUS int64 `json:"longest_us,omitempty"` // the longest worker of a level of several, for display
	Scheduled int64 `json:"scheduled,omitempty"`  // open loop: arrivals due
	Sent      int64 `json:"sent,omitempty"`
	Dropped   int64 `json:"dropped,omitempty"` // open loop: beyond the in-flight cap
	SpanUS    int64 `json:"span_us,omitempty"` // open loop: the time the arrivals took up
}

// MaxTexts bounds the number of distinct texts a tally keeps in Errors and
// Notes: the first ones in byte order, which does not depend on who met which
// text first. The rest is counted under OtherText.
const (
	MaxTexts  = 20
	OtherText = "(other)"
)

// NewTally returns an empty tally.
func NewTally() *Tally { return &Tally{Outcomes: Counts{}} }

// Calls is the number of attempts, unmeasured ones included.
func (t *Tally) Calls() int64 {
	var n int64
	for _, k := range t.Outcomes {
		n += k
	}
	return n
}

// Successes is the number of ok attempts.
func (t *Tally) Successes() int64 { return t.Outcomes[OK] }

// Measured is the denominator of every rate: attempts that say something about
// the target.
func (t *Tally) Measured() int64 { return t.Outcomes.Total() }

// Failures is Measured minus Successes.
func (t *Tally) Failures() int64 { return t.Measured() - t.Successes() }

// Reset empties the tally and keeps its memory.
func (t *Tally) Reset() {
	old := *t
	*t = Tally{Outcomes: old.Outcomes}
	clear(t.Outcomes)
	for i, d := range t.dists() {
		*d = *old.dists()[i]
		d.Reset()
	}
}

// Add counts one attempt. In open loop late says how long after its intended
// start it was sent, at least 1 ns; its latency then counts from the intended
// start. In closed loop late is zero and the latency is the service time.
func (t *Tally) Add(x *Exchange, late time.Duration) {
	if t.Outcomes == nil {
		t.Outcomes = Counts{}
	}
	t.Outcomes[x.Outcome]++
	if x.Delivered {
		t.Delivered++
	}
	if x.ByText {
		t.ByText++
	}
	if x.Fault != "" {
		count(&t.Faults, x.Fault)
	}
	for _, note := range x.Notes {
		countText(&t.Notes, note, 1)
	}
	t.BytesIn += x.BytesIn
	t.BytesOut += x.BytesOut
	t.Quota.add(x)
	if x.ClientTime > 0 {
		t.ClientTime.Record(micros(x.ClientTime))
	}
	if !x.Outcome.Measured() {
		return
	}
	if late > 0 {
		t.Late.Record(micros(late))
	}
	if x.Ok() {
		t.addSuccess(x, late)
		return
	}
	t.addFailure(x)
}

// Note counts a finding that belongs to the set as a whole.
func (t *Tally) Note(text string) { countText(&t.Notes, text, 1) }

func (t *Tally) addSuccess(x *Exchange, late time.Duration) {
	t.Latency.Record(micros(x.Latency + late))
	t.Service.Record(micros(x.Latency))
	if x.TTFT > 0 {
		t.TTFT.Record(micros(x.TTFT))
	}
	for _, g := range x.Gaps {
		t.Gap.Record(micros(g))
	}
	if x.ServerTime > 0 {
		t.ServerTime.Record(micros(x.ServerTime))
	}
	if x.Usage {
		t.Usage++
		t.TokensIn.Record(x.TokensIn)
		t.TokensOut.Record(x.TokensOut)
		t.CachedIn += x.CachedIn
	}
}

func (t *Tally) addFailure(x *Exchange) {
	count(&t.Kinds, x.Outcome.Kind())
	if x.Message != "" {
		countText(&t.Errors, x.Message, 1)
	}
	if x.Code != 0 {
		count(&t.Codes, x.Code)
	}
	if x.Status != 0 {
		count(&t.Statuses, x.Status)
	}
	if x.Truncated {
		t.Truncated++
	}
	if x.Outcome == Timeout {
		t.TimedOut.Record(micros(x.Latency))
		return
	}
	t.Failed.Record(micros(x.Latency))
}

// Merge adds all of o.
func (t *Tally) Merge(o *Tally) {
	if o == nil {
		return
	}
	if t.Outcomes == nil {
		t.Outcomes = Counts{}
	}
	for k, n := range o.Outcomes {
		t.Outcomes[k] += n
	}
	mergeCounts(&t.Kinds, o.Kinds)
	mergeCounts(&t.Faults, o.Faults)
	mergeTexts(&t.Notes, o.Notes)
	mergeTexts(&t.Errors, o.Errors)
	mergeCounts(&t.Codes, o.Codes)
	mergeCounts(&t.Statuses, o.Statuses)
	t.Delivered += o.Delivered
	t.ByText += o.ByText
	t.Usage += o.Usage
	t.CachedIn += o.CachedIn
	t.Truncated += o.Truncated
	t.BytesIn += o.BytesIn
	t.BytesOut += o.BytesOut
	t.OutputChecked += o.OutputChecked
	t.OutputInvalid += o.OutputInvalid
	theirs := o.dists()
	for i, d := range t.dists() {
		d.Merge(theirs[i])
	}
	t.Quota.merge(&o.Quota)
	t.Window.Merge(o.Window)
}

const tallyDists = 11

func (t *Tally) dists() [tallyDists]*Dist {
	return [tallyDists]*Dist{&t.Latency, &t.Service, &t.Failed, &t.TimedOut, &t.Late, &t.TTFT, &t.Gap,
		&t.ServerTime, &t.ClientTime, &t.TokensIn, &t.TokensOut}
}

func (q *QuotaSeen) add(x *Exchange) {
	if x.Quota == "" {
		return
	}
	count(&q.Seen, x.Quota)
	q.Limit = max(q.Limit, x.QuotaLimit)
	q.WindowUS = max(q.WindowUS, micros(x.QuotaWindow))
	q.MaxRetryAfter = max(q.MaxRetryAfter, micros(x.RetryAfter))
}

func (q *QuotaSeen) merge(o *QuotaSeen) {
	mergeCounts(&q.Seen, o.Seen)
	q.Limit = max(q.Limit, o.Limit)
	q.WindowUS = max(q.WindowUS, o.WindowUS)
	q.MaxRetryAfter = max(q.MaxRetryAfter, o.MaxRetryAfter)
	q.WaitedUS += o.WaitedUS
	q.Waits += o.Waits
}

// Merge adds the window of other workers of the same level.
func (w *Window) Merge(o Window) {
	w.Workers = max(w.Workers, o.Workers)
	w.Completed += o.Completed
	w.Succeeded += o.Succeeded
	w.BusyUS += o.BusyUS
	w.LongestUS = max(w.LongestUS, o.LongestUS)
	w.Scheduled += o.Scheduled
	w.Sent += o.Sent
	w.Dropped += o.Dropped
	w.SpanUS = max(w.SpanUS, o.SpanUS)
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

func count[K comparable](m *map[K]int64, k K) {
	if *m == nil {
		*m = map[K]int64{}
	}
	(*m)[k]++
}

func mergeCounts[K comparable](dst *map[K]int64, src map[K]int64) {
	if len(src) == 0 {
		return
	}
	if *dst == nil {
		*dst = make(map[K]int64, len(src))
	}
	for k, n := range src {
		(*dst)[k] += n
	}
}

func mergeTexts(dst *map[string]int64, src map[string]int64) {
	for text, n := range src {
		countText(dst, text, n)
	}
}

// countText counts a text among the MaxTexts first in byte order. A text that
// is once pushed out can never belong to them again, and one that belongs to
// them in a whole belongs to them in every part, so counts stay right however
// the parts are merged.
func countText(m *map[string]int64, text string, n int64) {
	if *m == nil {
		*m = map[string]int64{}
	}
	texts := *m
	if _, known := texts[text]; known || text == OtherText {
		texts[text] += n
		return
	}
	distinct, last := 0, ""
	for have := range texts {
		if have != OtherText {
			distinct++
			last = max(last, have)
		}
	}
	if distinct >= MaxTexts {
		if text > last {
			texts[OtherText] += n
			return
		}
		texts[OtherText] += texts[last]
		delete(texts, last)
	}
	texts[text] = n
}
