package probe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// One crash fails the calls in flight, not the rest of the stage.
func TestCrashFailsOneCall(t *testing.T) {
	for _, kind := range []string{"load", "recovery"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dead, crashed := false, false
				f := &fake{answer: func(_ context.Context, c target.Call) metrics.Exchange {
					if c.Op == 5 && !crashed {
						dead, crashed = true, true
					}
					if dead {
						return metrics.Exchange{Outcome: metrics.Connection}
					}
					return metrics.Exchange{Delivered: true}
				}}
				f.alive = func() (alive, restarted bool, exit string) {
					restarted, dead = dead, false
					return true, restarted, "exit status 9"
				}
				u := loadUnit(40, wire.Load{Workers: 1, Level: 1})
				if kind == "recovery" {
					u = recoveryUnit(40, wire.Recovery{MaxRetries: 2})
				}
				tally := run(t, f.env(), u).Tally
				if got := tally.Outcomes[metrics.Connection]; got != 1 {
					t.Errorf("%d calls failed, want the one in flight", got)
				}
				if tally.Notes["the server died in mid-run and was started again: exit status 9"] != 1 {
					t.Errorf("notes %v, want the restart counted once", tally.Notes)
				}
			})
		})
	}
}

// Users who are not let in fail their share of a level; they neither hide it nor
// take over the calls of the others.
func TestRefusedSessionsFailTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := script(nil)
		f.session = func(user int) error {
			if user >= 6 {
				return errors.New("503: too many sessions")
			}
			return nil
		}
		tally := run(t, f.env(), loadUnit(80, wire.Load{Workers: 8, Level: 8})).Tally
		if ok, failed := tally.Successes(), tally.Failures(); ok != 60 || failed != 20 {
			t.Errorf("%d ok, %d failed; want 60 and 20: two users of eight were refused", ok, failed)
		}
	})
}

// Quota refusals of the target are marked in the trajectory, injected ones not.
func TestQuotaIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := metrics.Exchange{Outcome: metrics.RateLimited, Quota: "http_status", Delivered: true}
		b := run(t, script(map[uint64][]metrics.Exchange{0: {refused}}).env(), recoveryUnit(3, wire.Recovery{MaxRetries: 1})).Behavior
		if b.QuotaOps != 1 || b.QuotaAttempts != 1 || b.Disrupted != 0 || b.CleanFailed != 0 {
			t.Errorf("behavior %+v, want one operation left out for quota", b)
		}
	})
}
