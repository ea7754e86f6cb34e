// Package http1 is the HTTP/1.1 client of the load path.
//
// In go requests that were laid out beforehand; out come answers read into the
// buffer of the connection they came on. A call runs on the goroutine that makes
// it: one write, then reads. No connection has a goroutine of its own, and a call
// in the steady state allocates nothing.
//
//	Pool ── Take ──▶ Conn ── Send · Head · More ──▶ Release (kept) or Discard
//	  └─ RoundTrip: the same connections behind net/http's interface
//	Transport: Pool where HTTP/1.1 is spoken directly; net/http's own transport
//	           behind a proxy and where the server chose HTTP/2
//
// What never happens here: a request that the server may have seen is sent again;
// a redirect, a cookie or a compression nobody asked for; a wait beyond the
// deadline of the call or the end of its context.
//
// A server may close a connection while it is idle. Where that is known before
// the request is out, the request goes out on another one; where the close crosses
// the request on the wire nobody can tell whether it was carried out, and the call
// fails with a RecycledError. Both are counted.
package http1
