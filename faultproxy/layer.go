package faultproxy

import (
	"context"
	"time"

	"ordeal/faultproxy/schedule"
	"ordeal/metrics"
)

// Layer injects faults at call level. It is used by one worker at a time, with
// that worker's clock.
//
//	kind                 reaches   latency       seen by the caller          delivered  executed
//	timeout              no        the timeout   timeout                     no         no
//	rate_limit           no        20 ms         rate_limited, 429, 1 s      yes        no
//	server_error         no        20 ms         server_error, 500           yes        no
//	connection_refused   no        20 ms         connection                  no         no
//	malformed            yes       real          invalid_response, cut       yes        yes
//	response_lost        yes       real          timeout                     no         yes
//
// A fault on a reply that had failed anyway takes nothing away that was there:
// it is marked with FaultRealized "none", malformed leaves the failure as it
// is, and response_lost drops it without claiming an execution.
type Layer struct {
	Schedule *schedule.Schedule // nil injects nothing
	Clock    Clock
}

// Do makes one attempt, counted from 0, of an operation: through forward, or
// in place of it. timeout is the caller's limit, which an injected timeout
// waits for. The time it took has passed on the clock when Do returns.
func (l *Layer) Do(ctx context.Context, op uint64, attempt uint32, timeout time.Duration,
	forward func(context.Context) metrics.Exchange) metrics.Exchange {
	var d schedule.Decision
	if l.Schedule != nil {
		d = l.Schedule.At(op, attempt)
	}
	if !d.Kind.Facts().ReachesTarget {
		return l.answer(ctx, d.Kind, timeout)
	}
	x := forward(ctx)
	l.Clock.Advance(x.Latency)
	if d.Kind == schedule.None || !x.Outcome.Measured() {
		return x
	}
	return spoil(x, d)
}

// answer stands in for the target.
func (l *Layer) answer(ctx context.Context, k schedule.Kind, timeout time.Duration) metrics.Exchange {
	facts := k.Facts()
	took := facts.Latency
	if k == schedule.Timeout && timeout > 0 {
		took = timeout
	}
	start := l.Clock.Now()
	if err := l.Clock.Sleep(ctx, took); err != nil {
		return metrics.Exchange{Outcome: metrics.Cancelled, Origin: metrics.FromGenerator,
			Latency: l.Clock.Now() - start, Message: "stopped during an injected " + k.String()}
	}
	return metrics.Exchange{
		Outcome: seenAs(k), Origin: metrics.FromInjector, Delivered: facts.Delivered, Executed: metrics.No,
		Fault: k.String(), Latency: took, Status: facts.Status, RetryAfter: facts.RetryAfter, Message: message(k),
	}
}

// spoil turns a real reply into what a fault leaves of it.
func spoil(x metrics.Exchange, d schedule.Decision) metrics.Exchange {
	x.Fault = d.Kind.String()
	if !x.Ok() {
		x.FaultRealized = schedule.None.String()
		if d.Kind == schedule.Malformed || !x.Delivered {
			return x
		}
	} else {
		x.Executed = metrics.Yes
	}
	x.Outcome, x.Origin, x.Message = seenAs(d.Kind), metrics.FromInjector, message(d.Kind)
	x.Delivered = d.Kind.Facts().Delivered
	x.ByText, x.Usage, x.Structured = false, false, nil
	x.Text = x.Text[:schedule.Below(d.Cut, uint64(len(x.Text)))]
	if !x.Delivered {
		x.Text, x.Status, x.Code, x.RetryAfter, x.BytesIn = "", 0, 0, 0, 0
	}
	return x
}

// seenAs is the outcome a kind of fault looks like to the caller.
func seenAs(k schedule.Kind) metrics.Outcome {
	switch k {
	case schedule.Timeout, schedule.ResponseLost:
		return metrics.Timeout
	case schedule.RateLimit:
		return metrics.RateLimited
	case schedule.ServerError:
		return metrics.ServerError
	case schedule.Malformed:
		return metrics.InvalidResponse
	case schedule.ConnectionRefused:
		return metrics.Connection
	}
	return metrics.HarnessError // a kind this layer does not know must not be charged to the target
}

func message(k schedule.Kind) string { return "injected fault: " + k.String() }
