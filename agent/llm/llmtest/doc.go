// Package llmtest is a language-model endpoint for tests: one HTTP server that
// speaks the OpenAI chat-completions wire and the Anthropic messages wire,
// streaming and not, and that can misbehave in every way a provider has been
// seen to.
//
// In goes a Plan, a pure function from a request to the Answer it gets; out
// comes the answer on the wire, and a journal with the request as it arrived
// and the moment of every token that was sent. Nothing is drawn at random and
// nothing depends on the order of requests beyond their number, so a run can
// be repeated to the byte (except for the waits, which are real).
//
//	POST /v1/chat/completions   OpenAI wire
//	POST /v1/messages           Anthropic wire
//	GET  /v1/models             both, by the headers of the request
//
// A request that the real API would refuse is refused here as well (a missing
// key when one is set, no model, no messages, no max_tokens or anthropic-version
// on the Anthropic wire), so a client that passes here has said what it must.
// That the server itself tells the truth is checked with the official SDKs of
// both providers in both of their languages.
package llmtest
