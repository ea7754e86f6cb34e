package probe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
)

// TestGeneratorLimited forces the limits of a generator: each is found, and early.
func TestGeneratorLimited(t *testing.T) {
	addr, cpu := child(t, -1, "echo")(), lastCPU(t)
	const long = 2500 * time.Millisecond
	rows := []struct {
		name  string
		hog   bool
		order order
		want  []string // any of these is in the reason
		short float64  // at least
	}{
		{"OneCPU", false, order{Load: wire.Load{Workers: 8, Level: 8, MilliRate: 300_000_000, Duration: long, MaxInFlight: 500}},
			[]string{"used ", "waited for a CPU", "issued ", "began more than", "woke up"}, 1.05},
		{"ClosedLoop", false, order{Load: wire.Load{Workers: 64, Level: 64, Duration: long}}, []string{"used ", "waited for a CPU", "woke up"}, 1.01},
		{"Hog", true, order{Load: wire.Load{Workers: 8, Level: 8, MilliRate: 8_000_000, Duration: long, MaxInFlight: 500}},
			[]string{"waited for a CPU", "woke up", "began more than", "issued ", "used "}, 0},
		{"Files", false, order{Files: 60, Load: wire.Load{Workers: 200, Level: 200, Duration: long / 2}}, []string{"no descriptor left"}, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if r.hog {
				for range 3 {
					child(t, cpu, "hog")
				}
			}
			r.order.Addr = addr
			eventually(t, func(t *testing.T) string {
				began := time.Now()
				got := generator(t, cpu, r.order)
				g := got.Generator
				if got.Failure != nil || !g.Saturated || g.Short < r.short || g.Short > mostShort {
					t.Fatalf("%+v, want a mark that asks for at least %v times the generator", got, r.short)
				}
				if !slices.ContainsFunc(r.want, func(want string) bool { return strings.Contains(g.Reason, want) }) {
					t.Errorf("reason %q, want one of %q", g.Reason, r.want)
				}
				if took, most := time.Since(began), r.order.Load.Duration+limitTimeout+time.Second; got.Marked <= 0 || got.Marked > 2*time.Second || took > most {
					return fmt.Sprintf("marked after %v, ended after %v; want 2s and %v", got.Marked, took, most)
				}
				return ""
			})
		})
	}
}

// TestNoDescriptorIsOurs: calls without a descriptor say nothing about the target.
func TestNoDescriptorIsOurs(t *testing.T) {
	addr := child(t, -1, "echo")()
	got := generator(t, -1, order{Addr: addr, Files: 60, Load: wire.Load{Workers: 200, Level: 200, Duration: 200 * time.Millisecond}})
	if got.Harness < 100 || got.Successes != got.Measured || got.Successes == 0 {
		t.Errorf("%d calls of ours, %d of %d well; want those of the callers without a descriptor to be ours", got.Harness, got.Successes, got.Measured)
	}
	got = generator(t, -1, order{Addr: addr, Full: true, Load: wire.Load{Workers: 20, Level: 20, Duration: 200 * time.Millisecond}})
	if f := got.Failure; f == nil || f.Class != "harness" || !strings.Contains(f.Remedy, "ulimit -n") {
		t.Errorf("failure %+v, want one of ours that says what to do", f)
	}
}

// TestGeneratorHealthy: a load that this machine carries is not marked.
func TestGeneratorHealthy(t *testing.T) {
	addr := child(t, -1, "echo")()
	rows := map[string]wire.Load{
		"Open":   {Workers: 8, Level: 8, MilliRate: 500_000, Duration: 1600 * time.Millisecond},
		"Closed": {Workers: 4, Level: 4, Think: 10 * time.Millisecond, Duration: 1600 * time.Millisecond},
	}
	for name, l := range rows {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				eventually(t, func(t *testing.T) string {
					got := generator(t, -1, order{Addr: addr, Load: l})
					if got.Failure != nil || got.Successes < 100 || got.Successes != got.Measured {
						t.Fatalf("%+v", got)
					}
					return got.Generator.Reason
				})
			}
		})
	}
}
