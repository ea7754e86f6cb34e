// Package mcp is a measuring client of the Model Context Protocol.
//
// In go a configuration with resolved secrets, tool names and raw arguments;
// out come metrics.Exchange values: one per call, complete with outcome, timing,
// bytes and findings. It speaks streamable HTTP (JSON and SSE answers), the older
// HTTP+SSE transport and stdio, in both eras of the protocol: the handshake of
// 2024-11-05 to 2025-11-25, and the stateless revision 2026-07-28.
//
// What never happens here: a second try of a call that the server may have seen
// (see agent/http1 for the ones it cannot have); a bad reply that harms any call but its own; a wait
// without a bound; a secret in a message. A server process never outlives its
// client, however it behaves.
//
//	Client ─ Session ─┬─ httpLink     one POST per call, answers on it
//	                  ├─ legacyLink ─┬─ mux   pending calls by id,
//	                  └─ stdioLink ──┘        answers as they come
//	                        └─ process  own group, stderr drained into a ring
//
// A call has two ways. The fast one sends a request laid out beforehand and
// recognises a plain success where it lies (classify); it allocates nothing. All
// else is the thorough way's, which takes over with the bytes read so far and is
// the one judge of everything unusual. Calls whose text is to be kept, with
// progress, or with arguments repeated in headers go there at once.
//
// Goroutines: a mux link has one reader, on stdio one writer (outbox), a process
// one waiter and one drain of its stderr; answers to server requests and cancel notices run beside the call
// that caused them. Close waits for all of them.
//
// Rules of acceptance, where servers differ from the specification:
//   - A reply whose id changed type fails its call at once as protocol_error.
//   - JSON in an SSE content type, SSE in a JSON one, and either without or with
//     a foreign content type are read for what they are, with a finding; HTML is
//     not read. Any content coding but gzip fails the call.
//   - A broken SSE answer that has an event id is resumed by GET while the
//     resumption makes progress, at most five times (handshake era only).
//   - Accept-Encoding is always identity: compression would be measured too.
//   - Redirects within the origin are followed for 307 and 308; others fail.
package mcp
