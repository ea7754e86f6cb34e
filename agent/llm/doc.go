// Package llm is our own client for the two wires language models are reached
// by: OpenAI's chat completions and Anthropic's messages, both streamed.
//
// In goes a Config and, per call, the index of an operation or a prompt of its own;
// out comes a Reply: what the model said, and the metrics.Exchange that says how
// long it took and what became of it. A failure of the endpoint is a value, never a
// Go error. What never happens here: a retry of what the endpoint may have seen, a
// redirect followed, an answer cut short and still called a success.
//
// # Time
//
// All durations count from the call's start, so a connection that has to be
// opened first (dial, TLS) is inside of them; an idle connection is kept for
// four seconds, which is less than common servers keep theirs. One that the server
// closes as it is used again is a matter of package web: a request that cannot have
// been seen goes out on another and is counted in a note, any other fails.
//
// An event came when the kernel received the segment with its end, not when a
// goroutine got to read it, and before anything is made of it: with a thousand
// streams on one core the two are apart by 0.1 ms at the median and by milliseconds
// at p99. Events that are read together share the stamp of the last. Over HTTP/2,
// whose streams share a connection, the moment of reading counts.
//
//	FirstByte  first byte of the response head
//	TTFT       first event that carries something generated: text, reasoning,
//	           a refusal, or a piece of a tool call
//	Gaps       between one such event and the next. An event is what the
//	           provider sends at a time, often but not always one token; two
//	           that arrive in one packet are 0 apart. At most 4096 are kept,
//	           and a note says when more came.
//	Latency    the end marker, or what ended the call otherwise
//
// Two limits apply: Config.Timeout to the whole call, Config.GapTimeout between
// two generated events, once the first has come. Keep-alive comments and pings
// reset neither. Behind the end marker the rest of the body is read, so that
// the connection can be used again, for 100 ms at most and outside of Latency.
// There is no ServerTime: what providers report in the response head is known
// before the answer is.
//
// # Outcomes
//
// Structure decides. A stream is ok when its end marker came: [DONE] or a
// finish_reason on the OpenAI wire, message_stop on the Anthropic wire.
//
//	200 and end marker            ok
//	  stopped at a token limit    ok, Truncated, with a note: max_tokens is ours
//	  refusal, content filter     invalid_response
//	  no content at all           invalid_response
//	  tool arguments not JSON     invalid_response
//	error object in the stream    by its code or type, as the same error with an
//	                              HTTP status would be; an unknown one is
//	                              server_error; overloaded is rate_limited
//	stream ends without marker    invalid_response, Truncated
//	connection cut or reset       connection, Truncated when the answer had begun
//	silence                       timeout
//	one JSON document             used like a stream, with a note and without TTFT
//	web page, empty body, {}      invalid_response
//	408                           timeout
//	429, 529, 503 + Retry-After,
//	503 that says overloaded      rate_limited
//	other 5xx                     server_error
//	401, 403                      auth_required
//	other 4xx                     protocol_error
//	3xx                           invalid_response: not followed, the key stays here
//
// Duplicate chunks of text cannot be seen on the OpenAI wire, which numbers
// nothing; on the Anthropic wire a block that starts twice, and a piece of a
// block that never started, are invalid_response.
//
// Tokens are those the provider reports. On a failed call they are what had
// been reported until then, a lower bound. TokensIn includes CachedIn on both
// wires (Anthropic counts them apart; we add them, and cache writes, up).
//
// # Servers that do not know a field
//
// stream_options asks for usage. A server that ignores it just reports none. A
// server that refuses it, or refuses max_tokens in favour of
// max_completion_tokens, fails that one call with protocol_error and a note; the
// client leaves the field out (uses the other one) from the next call on.
package llm
