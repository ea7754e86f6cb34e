// Package web makes plain HTTP requests: to an agent, or anything else, that is
// served over HTTP.
//
// In goes a Config and, per call, a body; out comes a metrics.Exchange that says
// how long the answer took and what became of it. A failure of the server is a
// value, never a Go error. What never happens here: a retry of what a server may
// have seen, a redirect to another origin, an answer cut short and still called a
// success. Conn, Trip and NewTransport are the connections, which the client for
// language models uses too.
//
// # Time
//
// All durations count from the call's start; a connection that has to be opened
// first is inside of them. FirstByte is the first byte of the response head,
// Latency the end of the body. An answer of type text/event-stream, or of one JSON
// text a line (application/x-ndjson and its like), is a stream: TTFT is its first
// event with data, or its first line, and Gaps are between one and the next, at
// most 4096. Arrivals are taken from the kernel's stamp of the segment, not from
// the moment a goroutine gets to read; over HTTP/2, and where there is no such
// stamp, from the moment of reading.
//
// # Outcomes
//
//	2xx, complete                ok
//	  event of type error        server_error
//	  stream without an event,
//	  cut inside of one          invalid_response, Truncated
//	429, 503 + Retry-After       rate_limited
//	401, 403                     auth_required
//	407                          auth_required, of the proxy
//	408                          timeout
//	other 4xx                    protocol_error
//	other 5xx                    server_error
//	3xx                          invalid_response, unless followed
//	larger than MaxAnswer        invalid_response
//	no complete answer in time   timeout
//	refused, reset, cut          connection, Truncated when the answer had begun
//	no port, descriptor, memory  harness_error, of the generator
//
// A redirect is followed at most three times, within the origin, and where it
// keeps the method: 307 and 308, and of a GET 301, 302 and 303. The time of all
// hops is the call's.
//
// # Connections that a server closes while idle
//
// Where the close is known before the request is out, or had happened before a byte
// of the request reached the server's machine (by its own acknowledgement), the
// request goes out on another connection, and a note counts the recycling. Where the two cross on the wire
// nobody can tell whether the request was carried out: it is not sent again, and
// the outcome is connection, with a message that says so. Over HTTP/2, streams that
// the server says it has not begun (GOAWAY, REFUSED_STREAM) go out again and are
// counted as well.
package web
