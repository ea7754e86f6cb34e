package probe

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

const querySchema = `{"type":"object","properties":{"query":{"type":"string","minLength":1}},"required":["query"]}`

func contractUnit(input string) *wire.Unit {
	return &wire.Unit{ID: "c", Kind: wire.ContractUnit, Ops: wire.Range{To: 100}, Contract: &wire.Contract{
		Tool: wire.Tool{Name: "echo", InputSchema: json.RawMessage(input)}, Baseline: json.RawMessage(`{"query":"hello"}`), MaxCases: 100}}
}

func ok() metrics.Exchange { return metrics.Exchange{Delivered: true, Executed: metrics.Yes} }
func rejected(why string) metrics.Exchange {
	return metrics.Exchange{Outcome: metrics.ToolError, Delivered: true, Message: why}
}
func silence() metrics.Exchange { return metrics.Exchange{Outcome: metrics.Connection} }

// TestContractMock: the sound profile refuses everything its schema forbids,
// the careless one accepts it all.
func TestContractMock(t *testing.T) {
	for profile, sound := range map[string]bool{"healthy": true, "degraded": false} {
		t.Run(profile, func(t *testing.T) {
			env := mockEnv(t, profile)
			survey := run(t, env, &wire.Unit{ID: "s", Kind: wire.SurveyUnit}).Survey
			tool := survey.Tools[0]
			u := contractUnit(string(tool.InputSchema))
			u.Contract.Tool, u.Contract.Baseline = tool, tool.Args
			res := run(t, env, u)
			c := res.Contract
			if len(c.Cases) != c.Total || c.Total < 5 || c.LeftOut != 0 {
				t.Fatalf("%d cases of %d, %d left out", len(c.Cases), c.Total, c.LeftOut)
			}
			if diff := cmp.Diff(map[string]int64{"ok": int64(c.Total)}, c.Controls); diff != "" {
				t.Error(diff)
			}
			forbidden, reference := 0, 0
			for _, k := range c.Cases {
				if k.Reference {
					reference++
				}
				if !k.Forbidden {
					continue
				}
				forbidden++
				if accepted := k.Outcome == metrics.OK; accepted == sound {
					t.Errorf("%s: %v (%s)", k.Label, k.Outcome, k.Message)
				}
				if hasPayload := k.Payload != nil; hasPayload == sound {
					t.Errorf("%s: payload %s", k.Label, k.Payload)
				}
			}
			if forbidden < 3 || reference != 5 {
				t.Errorf("%d forbidden and %d reference cases, want at least 3 and exactly 5", forbidden, reference)
			}
			if extra := res.Calls - 2*int64(c.Total); sound && extra != 0 || !sound && extra == 0 {
				t.Errorf("%d calls beyond case and control", extra)
			}
		})
	}
}

// TestContractShrinks: what is kept is the smallest payload that is wrongly
// accepted for the same reason.
func TestContractShrinks(t *testing.T) {
	f := &fake{answer: func(context.Context, target.Call) metrics.Exchange { return ok() }}
	input := `{"type":"object","properties":{"query":{"type":"string","maxLength":20},"note":{"type":"string"}},"required":["query"]}`
	u := contractUnit(input)
	u.Contract.Baseline = json.RawMessage(`{"query":"hello","note":"unneeded"}`)
	res := run(t, f.env(), u)
	kept := map[string]string{}
	for _, k := range res.Contract.Cases {
		if k.Forbidden {
			kept[k.Label] = string(k.Payload)
		}
	}
	for label, want := range map[string]string{"missing_required[query]": `{}`, "wrong_type[query]": `{"query":0}`} {
		if kept[label] != want {
			t.Errorf("%s kept as %s, want %s (all: %v)", label, kept[label], want, kept)
		}
	}
	if spent := res.Calls - 2*int64(len(res.Contract.Cases)); spent > shrinkMost {
		t.Errorf("%d calls spent on shrinking", spent)
	}
}

func TestContractSparesDestructiveTools(t *testing.T) {
	f := &fake{answer: func(context.Context, target.Call) metrics.Exchange { return ok() }}
	u, yes := contractUnit(querySchema), true
	u.Contract.Tool.Destructive = &yes
	if res := run(t, f.env(), u); res.Calls != 2*int64(len(res.Contract.Cases)) {
		t.Errorf("%d calls for %d cases", res.Calls, len(res.Contract.Cases))
	}
}

// mortal dies of a null query: at once, or after a polite answer. It is
// restarted when asked whether it lives.
type mortal struct {
	fake
	dead, polite, final bool
	deaths              int
}

func newMortal(polite, final bool) *mortal {
	m := &mortal{polite: polite, final: final}
	m.answer = func(_ context.Context, c target.Call) metrics.Exchange {
		switch {
		case m.dead:
			return silence()
		case strings.Contains(string(c.Args), "null"):
			m.dead = true
			m.deaths++
			if m.polite {
				return rejected("no")
			}
			return silence()
		case string(c.Args) == `{"query":"hello"}`:
			return ok()
		}
		return rejected("query must be text")
	}
	m.alive = func() (bool, bool, string) {
		was := m.dead
		m.dead = m.dead && m.final
		switch {
		case m.final && was:
			return false, false, "exit status 1"
		case was:
			return true, true, "exit status 1"
		}
		return true, false, ""
	}
	return m
}

func TestContractCrash(t *testing.T) {
	for name, polite := range map[string]bool{"Silent": false, "AfterAnswering": true} {
		t.Run(name, func(t *testing.T) {
			m := newMortal(polite, false)
			c := run(t, m.env(), contractUnit(querySchema)).Contract
			var hit []string
			for _, k := range c.Cases {
				if k.Exit == "" {
					continue
				}
				hit = append(hit, k.Label)
				if k.Alive == nil || !*k.Alive || k.Reconnect == nil || !*k.Reconnect || k.Delivered != polite {
					t.Errorf("%s: alive %v, reconnect %v, delivered %v", k.Label, k.Alive, k.Reconnect, k.Delivered)
				}
				if hasPayload := k.Payload != nil; hasPayload == polite {
					t.Errorf("%s: payload %s", k.Label, k.Payload)
				}
			}
			if len(hit) != m.deaths || m.deaths == 0 || len(c.Liveness) != m.deaths {
				t.Errorf("deaths %d, charged to %v, liveness %q", m.deaths, hit, c.Liveness)
			}
			if len(c.Cases) != c.Total || c.Controls["undelivered"] != 0 || c.Controls["ok"] != int64(c.Total) {
				t.Errorf("%d cases of %d, controls %v: the run goes on with a new session", len(c.Cases), c.Total, c.Controls)
			}
		})
	}
}

func TestContractTargetGone(t *testing.T) {
	m := newMortal(false, true)
	c := run(t, m.env(), contractUnit(querySchema)).Contract
	if len(c.Cases) == 0 || len(c.Cases) == c.Total {
		t.Fatalf("%d cases of %d", len(c.Cases), c.Total)
	}
	last := c.Cases[len(c.Cases)-1]
	if last.Alive == nil || *last.Alive || last.Exit != "exit status 1" {
		t.Errorf("last case %+v", last)
	}
	if note := c.Liveness[len(c.Liveness)-1]; !strings.Contains(note, "did not come back") {
		t.Errorf("liveness %q", c.Liveness)
	}
}

// TestContractHang: a call without an answer on a target that lives on.
func TestContractHang(t *testing.T) {
	f := &fake{answer: func(_ context.Context, c target.Call) metrics.Exchange {
		if string(c.Args) == `{}` {
			return metrics.Exchange{Outcome: metrics.Timeout}
		}
		return ok()
	}}
	for _, k := range run(t, f.env(), contractUnit(querySchema)).Contract.Cases {
		hung := string(k.Payload) == `{}` && !k.Delivered
		if hung != (k.Alive != nil) || hung && (!*k.Alive || k.Reconnect != nil || k.Exit != "") {
			t.Errorf("%+v", k)
		}
	}
}

// TestContractFlakyControl: a control without an answer right after a case that
// was looked into already is the control's own failure.
func TestContractFlakyControl(t *testing.T) {
	f := &fake{}
	hung := false
	f.answer = func(_ context.Context, c target.Call) metrics.Exchange {
		was := hung
		hung = string(c.Args) == `{}`
		if hung || was {
			return metrics.Exchange{Outcome: metrics.Timeout}
		}
		return rejected("no")
	}
	c := run(t, f.env(), contractUnit(querySchema)).Contract
	hangs := 0
	for _, k := range c.Cases {
		if !k.Delivered {
			hangs++
		}
	}
	if hangs == 0 || c.Controls["undelivered"] == 0 || len(c.Liveness) != hangs {
		t.Errorf("%d hangs, controls %v, liveness %q", hangs, c.Controls, c.Liveness)
	}
}

func TestContractRanges(t *testing.T) {
	f := &fake{answer: func(context.Context, target.Call) metrics.Exchange { return rejected("no") }}
	whole := run(t, f.env(), contractUnit(querySchema)).Contract
	var parts []wire.CaseResult
	for from := uint64(0); from < 100; from += 3 {
		u := contractUnit(querySchema)
		u.Ops = wire.Range{From: from, To: from + 3}
		parts = append(parts, run(t, f.env(), u).Contract.Cases...)
	}
	if diff := cmp.Diff(whole.Cases, parts); diff != "" {
		t.Error(diff)
	}
	if whole.Controls["rejected"] != int64(whole.Total) || whole.Cases[0].ControlOK || !whole.Cases[0].ControlDelivered {
		t.Errorf("controls %v, first case %+v", whole.Controls, whole.Cases[0])
	}
}

func TestContractOutput(t *testing.T) {
	f := &fake{answer: func(_ context.Context, c target.Call) metrics.Exchange {
		if string(c.Args) != `{"query":"hello"}` {
			return rejected("no")
		}
		x := ok()
		x.Structured = json.RawMessage(`{"n":"one"}`)
		return x
	}}
	u := contractUnit(querySchema)
	u.Contract.Tool.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	c := run(t, f.env(), u).Contract
	if c.Output.Checked != int64(c.Total) || c.Output.Violations != c.Output.Checked || !strings.Contains(c.Output.First, "/n") {
		t.Errorf("output %+v of %d", c.Output, c.Total)
	}
}

func TestContractHalt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fake{}
		f.answer = func(context.Context, target.Call) metrics.Exchange {
			if len(f.calls) == 6 {
				cancel()
			}
			return rejected("no")
		}
		c := Run(ctx, f.env(), contractUnit(querySchema), nil).Contract
		if len(c.Cases) != 2 { // the third case was cut short
			t.Errorf("%d cases", len(c.Cases))
		}
	})
}

func TestBrief(t *testing.T) {
	long := `{"query":"` + strings.Repeat("A", 50_000) + `","more":[` + strings.Repeat("1,", 3000) + `1]}`
	want := `{"more":[1,1,1,1,1,"...(3001 elements)"],"query":"` + strings.Repeat("A", 50) + `...(50000 characters)"}`
	if got := string(brief(json.RawMessage(long))); got != want {
		t.Errorf("got %s", got)
	}
	if got := string(brief(json.RawMessage(`{"a":1}`))); got != `{"a":1}` {
		t.Errorf("got %s", got)
	}
	wide := `[` + strings.Repeat(`{"a":"`+strings.Repeat("b", 90)+`"},`, 3) + `"` + strings.Repeat(`\u0000`, 5000) + `"]`
	if got := brief(json.RawMessage(wide)); len(got) > briefBytes || !json.Valid(got) {
		t.Errorf("%d bytes, valid %v", len(got), json.Valid(got))
	}
}
