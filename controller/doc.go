// Package controller runs a scan from end to end.
//
//	spec ─ survey ─ choose ─ preflight ─ plan ─ dispatch ═ agents ═ merge ─ measure ─ policy ─ document
//
// In go Options; out comes a result document, also after an interrupt or a
// timeout: then it is marked partial and the error says why. A scan that would
// mislead or do harm returns a *plan.Refusal, a target that cannot be reached
// an *Unmeasurable.
package controller
