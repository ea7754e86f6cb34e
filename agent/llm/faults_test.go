package llm_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"ordeal/agent/llm"
	"ordeal/agent/llm/llmtest"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

const both = "" // a row that holds on both wires alike

// faults lists every way to fail that the server knows, and what becomes of it.
// "three deltas, then" is After 3 of the five tokens of fiveTokens.
var fiveTokens = []string{"a", "b", "c", "d", "e"}

var faults = []struct {
	name    string
	wire    llm.Wire
	answer  llmtest.Answer
	want    metrics.Outcome
	text    string
	cut     bool        // Truncated
	exec    metrics.Tri // Executed
	message string      // contained in Message
	note    string      // contained in a note
}{
	// In the stream.
	{name: "ErrorEvent", answer: llmtest.Answer{Fault: llmtest.ErrorEvent, After: 3}, want: metrics.ServerError, text: "abc", message: "after 3 tokens: "},
	{name: "ErrorEventType", wire: llm.OpenAI, answer: llmtest.Answer{Fault: llmtest.ErrorEvent, After: 3}, want: metrics.ServerError, text: "abc", message: "server_error: The server had an error"},
	{name: "ErrorEventOfTheRequest", answer: llmtest.Answer{Fault: llmtest.ErrorEvent, Error: &llmtest.APIError{Type: "invalid_request_error", Message: "no"}}, want: metrics.ProtocolError, message: "invalid_request_error: no"},
	{name: "ErrorEventOfTheKey", answer: llmtest.Answer{Fault: llmtest.ErrorEvent, Error: &llmtest.APIError{Type: "authentication_error"}}, want: metrics.AuthRequired},
	{name: "ErrorEventUnknownType", answer: llmtest.Answer{Fault: llmtest.ErrorEvent, Error: &llmtest.APIError{Type: "frobnicated"}}, want: metrics.ServerError},
	{name: "ErrorEventNumericCode", wire: llm.OpenAI, answer: llmtest.Answer{Fault: llmtest.ErrorEvent, Error: &llmtest.APIError{Type: "x", Code: "429"}}, want: metrics.RateLimited},
	{name: "ErrorEventSpent", wire: llm.OpenAI, answer: llmtest.Answer{Fault: llmtest.ErrorEvent, Error: &llmtest.APIError{Type: "insufficient_quota", Code: "insufficient_quota"}}, want: metrics.RateLimited, note: "quota is used up"},
	{name: "OverloadedInStreamOpenAI", wire: llm.OpenAI, answer: llmtest.Answer{Fault: llmtest.ErrorEvent, After: 3, Error: llmtest.Overloaded(llmtest.OpenAI)}, want: metrics.RateLimited, text: "abc"},
	{name: "OverloadedInStreamAnthropic", wire: llm.Anthropic, answer: llmtest.Answer{Fault: llmtest.ErrorEvent, After: 3, Error: llmtest.Overloaded(llmtest.Anthropic)}, want: metrics.RateLimited, text: "abc", message: "overloaded_error"},
	{name: "BareError", answer: llmtest.Answer{Fault: llmtest.BareError, After: 3}, want: metrics.ServerError, text: "abc"},
	{name: "BareErrorFirst", wire: llm.OpenAI, answer: llmtest.Answer{Fault: llmtest.BareError, Error: &llmtest.APIError{Type: "rate_limit_exceeded"}}, want: metrics.RateLimited},
	{name: "Reset", answer: llmtest.Answer{Fault: llmtest.Reset, After: 3, Gap: time.Millisecond}, want: metrics.Connection, cut: true},
	{name: "ChunkCut", answer: llmtest.Answer{Fault: llmtest.ChunkCut, After: 3}, want: metrics.Connection, text: "abc", cut: true, message: "in the middle of the answer"},
	{name: "CleanCut", answer: llmtest.Answer{Fault: llmtest.CleanCut, After: 3}, want: metrics.InvalidResponse, text: "abc", cut: true, message: "after 3 tokens without an end marker"},
	{name: "RoleOnly", answer: llmtest.Answer{Fault: llmtest.CleanCut}, want: metrics.InvalidResponse, cut: true, message: "after 0 tokens"},
	{name: "HalfEvent", answer: llmtest.Answer{Fault: llmtest.HalfEvent, After: 3}, want: metrics.InvalidResponse, text: "abc", cut: true, message: "in the middle of an event"},
	{name: "BadJSON", answer: llmtest.Answer{Fault: llmtest.BadJSON, After: 3}, want: metrics.InvalidResponse, text: "abc", message: "not JSON"},
	{name: "Duplicate", answer: llmtest.Answer{Fault: llmtest.Duplicate}, want: metrics.OK, text: "aabbccddee", exec: metrics.Yes},
	{name: "Noise", answer: llmtest.Answer{Fault: llmtest.Noise}, want: metrics.OK, text: "abcde", exec: metrics.Yes},
	{name: "NoData", answer: llmtest.Answer{Fault: llmtest.NoData}, want: metrics.OK, text: "abcde", exec: metrics.Yes},
	{name: "NoDone", wire: llm.OpenAI, answer: llmtest.Answer{Fault: llmtest.NoMarker}, want: metrics.OK, text: "abcde", exec: metrics.Yes, note: "no [DONE]"},
	{name: "HalfDone", wire: llm.OpenAI, answer: llmtest.Answer{Fault: llmtest.HalfMarker}, want: metrics.OK, text: "abcde", exec: metrics.Yes, note: "no [DONE]"},
	{name: "NoMessageStop", wire: llm.Anthropic, answer: llmtest.Answer{Fault: llmtest.NoMarker}, want: metrics.InvalidResponse, text: "abcde", cut: true, note: "message_stop alone"},
	{name: "HalfMessageStop", wire: llm.Anthropic, answer: llmtest.Answer{Fault: llmtest.HalfMarker}, want: metrics.InvalidResponse, text: "abcde", cut: true, note: "message_stop alone"},
	{name: "NoFinish", answer: llmtest.Answer{Fault: llmtest.NoFinish}, want: metrics.OK, text: "abcde", exec: metrics.Yes, note: "without a stop reason"},
	{name: "EmptyChoice", answer: llmtest.Answer{Fault: llmtest.EmptyChoice}, want: metrics.InvalidResponse, exec: metrics.Yes, message: "without any content"},
	{name: "LateExtra", answer: llmtest.Answer{Fault: llmtest.LateExtra}, want: metrics.OK, text: "abcde", exec: metrics.Yes},

	// Why it stopped.
	{name: "Length", answer: llmtest.Answer{Stop: llmtest.StopLength}, want: metrics.OK, text: "abcde", cut: true, exec: metrics.Yes, note: "stopped at the token limit"},
	{name: "LengthInsideToolCall", answer: llmtest.Answer{Stop: llmtest.StopLength, Text: []string{}, Tools: []llmtest.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":`}}}, want: metrics.OK, cut: true, exec: metrics.Yes, note: "stopped at the token limit"},
	{name: "Refusal", wire: llm.OpenAI, answer: llmtest.Answer{Stop: llmtest.StopRefusal, Text: []string{"I ", "cannot."}}, want: metrics.InvalidResponse, exec: metrics.Yes, message: "refused: I cannot."},
	{name: "Refusal", wire: llm.Anthropic, answer: llmtest.Answer{Stop: llmtest.StopRefusal}, want: metrics.InvalidResponse, text: "abcde", exec: metrics.Yes, message: "refused"},
	{name: "Filter", wire: llm.OpenAI, answer: llmtest.Answer{Stop: llmtest.StopFilter}, want: metrics.InvalidResponse, text: "abcde", exec: metrics.Yes, message: "content filter"},
	{name: "NoContent", answer: llmtest.Answer{Text: []string{}}, want: metrics.InvalidResponse, exec: metrics.Yes, message: "without any content"},
	{name: "ReasoningOnly", answer: llmtest.Answer{Text: []string{}, Thinking: []string{"hm"}}, want: metrics.InvalidResponse, exec: metrics.Yes, message: "without any content"},
	{name: "ToolArgumentsNotJSON", answer: llmtest.Answer{Text: []string{}, Tools: []llmtest.ToolCall{{ID: "x", Name: "f", Arguments: `{"a":`, Parts: 2}}}, want: metrics.InvalidResponse, exec: metrics.Yes, message: "(f) are not JSON"},
	{name: "ToolWithoutName", answer: llmtest.Answer{Text: []string{}, Tools: []llmtest.ToolCall{{ID: "x", Arguments: `{}`}}}, want: metrics.InvalidResponse, exec: metrics.Yes, message: "has no name"},

	// Not a stream.
	{name: "JSONBody", answer: llmtest.Answer{Fault: llmtest.JSONBody}, want: metrics.OK, text: "abcde", exec: metrics.Yes, note: "one JSON document"},
	{name: "HTML", answer: llmtest.Answer{Fault: llmtest.HTML}, want: metrics.InvalidResponse, message: "content type text/html"},
	{name: "EmptyBody", answer: llmtest.Answer{Fault: llmtest.EmptyBody}, want: metrics.InvalidResponse, message: "empty body"},
	{name: "EmptyObject", answer: llmtest.Answer{Fault: llmtest.EmptyObject}, want: metrics.InvalidResponse, message: "no completion"},
	{name: "BadBody", answer: llmtest.Answer{Fault: llmtest.BadBody}, want: metrics.InvalidResponse, message: "no completion"},
	{name: "ShortBody", answer: llmtest.Answer{Fault: llmtest.ShortBody}, want: metrics.Connection, cut: true, message: "in the middle"},
	{name: "NoReply", answer: llmtest.Answer{Fault: llmtest.NoReply}, want: metrics.Connection},
	{name: "StreamAsText", answer: llmtest.Answer{Header: http.Header{"Content-Type": {"text/plain"}}}, want: metrics.OK, text: "abcde", exec: metrics.Yes, note: "a stream sent as text/plain"},

	// Status.
	{name: "400", answer: llmtest.Answer{Status: 400}, want: metrics.ProtocolError, exec: metrics.No, message: "HTTP 400 invalid_request_error"},
	{name: "401", answer: llmtest.Answer{Status: 401}, want: metrics.AuthRequired, exec: metrics.No},
	{name: "402", answer: llmtest.Answer{Status: 402}, want: metrics.ProtocolError, exec: metrics.No},
	{name: "403", answer: llmtest.Answer{Status: 403}, want: metrics.AuthRequired, exec: metrics.No},
	{name: "404", answer: llmtest.Answer{Status: 404}, want: metrics.ProtocolError, exec: metrics.No},
	{name: "408", answer: llmtest.Answer{Status: 408}, want: metrics.Timeout, exec: metrics.No},
	{name: "413", answer: llmtest.Answer{Status: 413}, want: metrics.ProtocolError, exec: metrics.No},
	{name: "429", answer: llmtest.Answer{Status: 429}, want: metrics.RateLimited, exec: metrics.No, message: "HTTP 429"},
	{name: "500", answer: llmtest.Answer{Status: 500}, want: metrics.ServerError},
	{name: "502", answer: llmtest.Answer{Status: 502}, want: metrics.ServerError},
	{name: "503", wire: llm.Anthropic, answer: llmtest.Answer{Status: 503}, want: metrics.ServerError},
	{name: "503Overloaded", wire: llm.OpenAI, answer: llmtest.Answer{Status: 503}, want: metrics.RateLimited, message: "server_is_overloaded"},
	{name: "503RetryAfter", answer: llmtest.Answer{Status: 503, Header: http.Header{"Retry-After": {"2"}}, Error: &llmtest.APIError{Type: "x"}}, want: metrics.RateLimited},
	{name: "504", answer: llmtest.Answer{Status: 504}, want: metrics.ServerError},
	{name: "529", answer: llmtest.Answer{Status: 529}, want: metrics.RateLimited},
	{name: "302", answer: llmtest.Answer{Status: 302, Header: http.Header{"Location": {"http://elsewhere.test/?key=x"}}}, want: metrics.InvalidResponse, exec: metrics.No, message: "redirect to host elsewhere.test refused"},
	{name: "204", answer: llmtest.Answer{Status: 204}, want: metrics.InvalidResponse, exec: metrics.No, message: "HTTP 204"},
}

func TestFaults(t *testing.T) {
	for _, row := range faults {
		for _, w := range bothWires {
			if row.wire != both && row.wire != w {
				continue
			}
			t.Run(row.name+"/"+string(w), func(t *testing.T) {
				if row.answer.Text == nil && len(row.answer.Tools) == 0 {
					row.answer.Text = fiveTokens
				}
				s := llmtest.New(t, llmtest.Always(row.answer))
				got := dial(t, s, w, nil).Chat(context.Background(), 0)
				if got.Outcome != row.want || got.Truncated != row.cut || got.Executed != row.exec || got.Origin != metrics.FromTarget {
					t.Errorf("got %v truncated %v executed %v (%s), want %v, %v, %v", got.Outcome, got.Truncated, got.Executed, got.Message, row.want, row.cut, row.exec)
				}
				if got.Text != row.text && row.answer.Fault != llmtest.Reset { // how much of it a reset destroys is up to the kernel
					t.Errorf("text %q, want %q", got.Text, row.text)
				}
				if notes := strings.Join(got.Notes, "\n"); !strings.Contains(got.Message, row.message) || !strings.Contains(notes, row.note) {
					t.Errorf("message %q, notes %q; want %q and %q inside", got.Message, notes, row.message, row.note)
				}
				if (got.Outcome == metrics.OK) != (got.Message == "") || got.Delivered != (got.Status != 0) || got.Latency <= 0 {
					t.Errorf("incoherent exchange: %+v", got.Exchange)
				}
				if n := len(s.Journal()); n != 1 {
					t.Errorf("the server saw %d requests, want 1", n)
				}
			})
		}
	}
}

func TestStallIsNotTheTotalLimit(t *testing.T) {
	for _, fault := range []llmtest.Fault{llmtest.Stall, llmtest.PingStall} {
		for _, w := range bothWires {
			t.Run(string(fault)+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				s := llmtest.New(t, llmtest.Always(llmtest.Answer{Text: fiveTokens, Fault: fault, After: 3, Gap: 2 * time.Millisecond}))
				c := dial(t, s, w, func(cfg *llm.Config) { cfg.GapTimeout = time.Second })
				got := c.Chat(context.Background(), 0)
				if got.Outcome != metrics.Timeout || !strings.Contains(got.Message, "no token for 1s after 3 tokens") || got.Latency > 10*time.Second {
					t.Errorf("got %v %q after %v", got.Outcome, got.Message, got.Latency)
				}
				if got.Executed != metrics.Unknown || got.Text != "abc" {
					t.Errorf("got executed %v, text %q", got.Executed, got.Text)
				}
			})
		}
	}
}

func TestTotalLimit(t *testing.T) {
	const limit = 500 * time.Millisecond
	rows := []struct {
		name   string
		answer llmtest.Answer
	}{
		{"NoHeaders", llmtest.Answer{Fault: llmtest.Hang}},
		{"NoFirstToken", llmtest.Answer{Fault: llmtest.Stall}},
		{"PingsOnly", llmtest.Answer{Fault: llmtest.PingStall, Gap: time.Millisecond}},
		{"SlowDrip", llmtest.Answer{Text: llmtest.Tokens(10_000), Gap: 5 * time.Millisecond}},
	}
	for _, row := range rows {
		for _, w := range bothWires {
			t.Run(row.name+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				s := llmtest.New(t, llmtest.Always(row.answer))
				c := dial(t, s, w, func(cfg *llm.Config) { cfg.Timeout, cfg.MaxTokens = limit, 10_000 })
				got := c.Chat(context.Background(), 0)
				if got.Outcome != metrics.Timeout || !strings.Contains(got.Message, "within 500ms") {
					t.Errorf("got %v %q", got.Outcome, got.Message)
				}
				if got.Latency < limit || got.Latency > 15*time.Second || got.Executed == metrics.Yes {
					t.Errorf("latency %v, executed %v", got.Latency, got.Executed)
				}
			})
		}
	}
}

func TestCallerEndsTheCall(t *testing.T) {
	for _, w := range bothWires {
		s := llmtest.New(t, llmtest.Always(llmtest.Answer{Fault: llmtest.Hang}))
		c := dial(t, s, w, nil)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if got := c.Chat(ctx, 0); got.Outcome != metrics.Timeout || !strings.Contains(got.Message, "deadline") {
			t.Errorf("%s: deadline: got %v %q", w, got.Outcome, got.Message)
		}
		ctx, stop := context.WithCancel(context.Background())
		stop()
		if got := c.Chat(ctx, 0); got.Outcome != metrics.Cancelled {
			t.Errorf("%s: cancelled: got %v %q", w, got.Outcome, got.Message)
		}
	}
}

func TestRetryAfterForms(t *testing.T) {
	want := map[string]struct {
		wait time.Duration
		note bool
	}{
		"seconds": {wait: 2 * time.Second}, "imf-date": {wait: 2 * time.Second}, "rfc850-date": {wait: 2 * time.Second},
		"past-date": {note: true}, "zero": {}, "decimal": {wait: 500 * time.Millisecond}, "negative": {note: true}, "nan": {note: true},
		"absurd": {wait: -1, note: true}, "two-headers": {note: true}, "milliseconds": {wait: 700 * time.Millisecond}, "none": {},
	}
	for _, form := range llmtest.RetryForms() {
		for _, status := range []int{429, 529} {
			s := llmtest.New(t, llmtest.Always(llmtest.Answer{Status: status, Header: form.Header(time.Now())}))
			got := dial(t, s, llm.Anthropic, nil).Chat(context.Background(), 0)
			w := want[form.Name]
			capped := w.wait < 0 && got.RetryAfter > time.Minute
			if got.Outcome != metrics.RateLimited || got.Quota != "http_status" || (got.RetryAfter != w.wait && !capped) || (len(got.Notes) > 0) != w.note {
				t.Errorf("%s on %d: got %v, quota %q, wait %v, notes %q", form.Name, status, got.Outcome, got.Quota, got.RetryAfter, got.Notes)
			}
		}
	}
}

func TestLimitHeaders(t *testing.T) {
	s := llmtest.New(t, llmtest.Always(llmtest.Answer{Header: http.Header{
		"X-Ratelimit-Limit-Requests": {"500"}, "X-Ratelimit-Remaining-Requests": {"499"}, "X-Ratelimit-Reset-Requests": {"120ms"}}}))
	got := dial(t, s, llm.OpenAI, nil).Chat(context.Background(), 0)
	want := []any{metrics.OK, "header", int64(500), time.Duration(0)}
	if diff := cmp.Diff(want, []any{got.Outcome, got.Quota, got.QuotaLimit, got.RetryAfter}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
