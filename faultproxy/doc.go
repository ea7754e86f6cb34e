// Package faultproxy puts faults between a caller and its target.
//
// In goes one call and the decision of faultproxy/schedule about it; out comes
// the exchange the caller sees, marked with what was injected and who caused
// it. Nothing here draws: no random number, no position in a sequence.
//
// The Layer works at call level, inside the load agent: it wraps the call
// itself, so it needs no port and no protocol, and it takes time on the Clock
// of whoever asks: real targets really wait, a virtual one books the time.
package faultproxy
