// Package slo holds what was measured against service level objectives.
//
// In goes a text such as "p95<500ms,error_rate<1%" and a tally; out comes one
// check per objective, decided on its interval: pass and fail where the evidence
// excludes the other, unproven and undecided where it does not. No I/O, no clock.
//
//	objectives = objective { "," objective }
//	objective  = metric ( "<" | "<=" ) limit
//	metric     = pN | ttft_pN | gap_pN     limit: a duration, 500ms   (N: 1 to 99.999)
//	           | error_rate | dropped_rate limit: a share, 1% or 0.01
package slo
