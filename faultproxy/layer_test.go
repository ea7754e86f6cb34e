package faultproxy

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/faultproxy/schedule"
	"ordeal/metrics"
)

// always injects one kind into every attempt.
func always(t testing.TB, kinds ...schedule.Kind) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Build("1337", []schedule.Rule{{ID: "r", Kinds: kinds, RatePPB: schedule.One}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const limit = 30 * time.Second

var (
	good = metrics.Exchange{Delivered: true, Executed: metrics.Yes, Latency: 300 * time.Millisecond, Usage: true, TokensIn: 5,
		BytesIn: 10, BytesOut: 20, Text: "0123456789", Structured: json.RawMessage(`{"a":1}`)}
	bad  = metrics.Exchange{Outcome: metrics.ToolError, Delivered: true, Latency: 300 * time.Millisecond, Message: "no such thing", BytesIn: 10, BytesOut: 20}
	gone = metrics.Exchange{Outcome: metrics.Connection, Latency: 300 * time.Millisecond, Message: "reset", BytesOut: 20}
)

func TestLayerEffects(t *testing.T) {
	short := func(k schedule.Kind, o metrics.Outcome, delivered bool, took time.Duration) metrics.Exchange {
		return metrics.Exchange{Outcome: o, Origin: metrics.FromInjector, Delivered: delivered, Executed: metrics.No, Fault: k.String(),
			Latency: took, Message: "injected fault: " + k.String()}
	}
	limited := short(schedule.RateLimit, metrics.RateLimited, true, 20*time.Millisecond)
	limited.Status, limited.RetryAfter = 429, time.Second
	failed := short(schedule.ServerError, metrics.ServerError, true, 20*time.Millisecond)
	failed.Status = 500
	cut := metrics.Exchange{Outcome: metrics.InvalidResponse, Origin: metrics.FromInjector, Delivered: true, Executed: metrics.Yes, Fault: "malformed",
		Latency: good.Latency, TokensIn: 5, BytesIn: 10, BytesOut: 20, Message: "injected fault: malformed"}
	lost := metrics.Exchange{Outcome: metrics.Timeout, Origin: metrics.FromInjector, Executed: metrics.Yes, Fault: "response_lost",
		Latency: good.Latency, TokensIn: 5, BytesOut: 20, Message: "injected fault: response_lost"}
	stillBad := bad
	stillBad.Fault, stillBad.FaultRealized = "malformed", "none"
	lostBad := metrics.Exchange{Outcome: metrics.Timeout, Origin: metrics.FromInjector, Fault: "response_lost", FaultRealized: "none",
		Latency: bad.Latency, BytesOut: 20, Message: "injected fault: response_lost"}
	stillGone := gone
	stillGone.Fault, stillGone.FaultRealized = "response_lost", "none"
	silent := good // an adapter that does not say whether the call was carried out
	silent.Executed = metrics.Unknown
	rows := []struct {
		name    string
		kind    schedule.Kind
		inner   metrics.Exchange
		reaches bool
		want    metrics.Exchange
	}{
		{"Timeout", schedule.Timeout, good, false, short(schedule.Timeout, metrics.Timeout, false, limit)},
		{"RateLimit", schedule.RateLimit, good, false, limited},
		{"ServerError", schedule.ServerError, good, false, failed},
		{"ConnectionRefused", schedule.ConnectionRefused, good, false, short(schedule.ConnectionRefused, metrics.Connection, false, 20*time.Millisecond)},
		{"Malformed", schedule.Malformed, good, true, cut},
		{"MalformedOnFailure", schedule.Malformed, bad, true, stillBad},
		{"ResponseLost", schedule.ResponseLost, good, true, lost},
		{"ResponseLostOfCallThatSucceeded", schedule.ResponseLost, silent, true, lost},
		{"ResponseLostOnFailure", schedule.ResponseLost, bad, true, lostBad},
		{"ResponseLostOnSilence", schedule.ResponseLost, gone, true, stillGone},
	}
	for _, r := range rows {
		for _, virtual := range []bool{true, false} {
			t.Run(r.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var clock Clock = NewRealClock()
					if virtual {
						clock = &VirtualClock{}
					}
					wall, reached := time.Now(), false
					l := Layer{Schedule: always(t, r.kind), Clock: clock}
					got := l.Do(t.Context(), 7, 0, limit, func(context.Context) metrics.Exchange {
						reached = true
						if !virtual {
							time.Sleep(r.inner.Latency)
						}
						return r.inner
					})
					if reached != r.reaches {
						t.Errorf("reached the target: %v", reached)
					}
					if len(got.Text) >= len(good.Text) {
						t.Errorf("text %q is not cut", got.Text)
					}
					got.Text = ""
					if diff := cmp.Diff(r.want, got); diff != "" {
						t.Error(diff)
					}
					if clock.Now() != r.want.Latency {
						t.Errorf("%v passed on the clock, want %v", clock.Now(), r.want.Latency)
					}
					if spent := time.Since(wall); virtual && spent != 0 || !virtual && spent != r.want.Latency {
						t.Errorf("really took %v", spent)
					}
				})
			})
		}
	}
}

func TestLayerPassesThrough(t *testing.T) {
	never, err := schedule.Build("1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*schedule.Schedule{"NoSchedule": nil, "NoRule": never} {
		l := Layer{Schedule: s, Clock: &VirtualClock{}}
		got := l.Do(t.Context(), 1, 0, limit, func(context.Context) metrics.Exchange { return good })
		if diff := cmp.Diff(good, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if l.Clock.Now() != good.Latency {
			t.Errorf("%s: %v booked", name, l.Clock.Now())
		}
	}
}

// TestLayerStopped: a fault that was cut short was not injected, and a call
// that was stopped is not spoiled.
func TestLayerStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		l := Layer{Schedule: always(t, schedule.Timeout), Clock: NewRealClock()}
		x := l.Do(ctx, 1, 0, limit, nil)
		if x.Outcome != metrics.Cancelled || x.Fault != "" || x.Latency != time.Second || time.Since(start) != time.Second {
			t.Errorf("got %+v after %v", x, time.Since(start))
		}
		l.Schedule = always(t, schedule.Malformed)
		x = l.Do(ctx, 1, 0, limit, func(context.Context) metrics.Exchange { return metrics.Exchange{Outcome: metrics.Cancelled} })
		if x.Outcome != metrics.Cancelled || x.Fault != "" {
			t.Errorf("got %+v", x)
		}
	})
}

// TestLayerFollowsSchedule: what is injected is what the schedule says, attempt
// by attempt.
func TestLayerFollowsSchedule(t *testing.T) {
	s, err := schedule.Build("42", []schedule.Rule{{ID: "r", Kinds: append(schedule.DefaultKinds(), schedule.ResponseLost), RatePPB: 400_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	l := Layer{Schedule: s, Clock: &VirtualClock{}}
	for op := range uint64(500) {
		for attempt := range uint32(3) {
			x := l.Do(t.Context(), op, attempt, limit, func(context.Context) metrics.Exchange { return good })
			want := s.At(op, attempt).Kind.String()
			if got := x.Fault; got != want && !(got == "" && want == "none") {
				t.Fatalf("operation %d attempt %d: %q, want %q", op, attempt, got, want)
			}
		}
	}
}

func TestVirtualClock(t *testing.T) {
	c := &VirtualClock{}
	c.Advance(time.Second)
	c.Advance(-time.Hour) // time does not run backwards
	if err := c.Sleep(t.Context(), time.Minute); err != nil || c.Now() != 61*time.Second {
		t.Errorf("now %v, %v", c.Now(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Sleep(ctx, time.Minute); err == nil || c.Now() != 61*time.Second {
		t.Errorf("a stopped sleep took until %v, %v", c.Now(), err)
	}
}

func BenchmarkLayer(b *testing.B) {
	rule := schedule.Rule{ID: "r", Kinds: schedule.DefaultKinds(), RatePPB: 200_000_000}
	s, err := schedule.Build("1", []schedule.Rule{rule})
	if err != nil {
		b.Fatal(err)
	}
	l := Layer{Schedule: s, Clock: &VirtualClock{}}
	b.ReportAllocs()
	for i := range b.N {
		l.Do(b.Context(), uint64(i), 0, limit, func(context.Context) metrics.Exchange { return good })
	}
}
