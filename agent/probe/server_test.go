package probe

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

type note struct {
	Text string `json:"text" jsonschema:"what to keep"`
}

type notes struct {
	Notes []string `json:"notes"`
}

// realServer is an MCP server of the official SDK on loopback, with a tool that
// writes and one that reads.
func realServer(t *testing.T) (Env, wire.Target) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "notebook", Version: "1"}, nil)
	kept := make(chan []string, 1)
	kept <- nil
	mcp.AddTool(server, &mcp.Tool{Name: "add_note", Description: "Keeps a note."},
		func(_ context.Context, _ *mcp.CallToolRequest, in note) (*mcp.CallToolResult, notes, error) {
			all := append(<-kept, in.Text)
			kept <- all
			return nil, notes{Notes: []string{in.Text}}, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "list_notes", Description: "Lists the notes.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, notes, error) {
			all := <-kept
			kept <- all
			return nil, notes{Notes: append([]string{}, all...)}, nil
		})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(h.Close)
	where := wire.Target{Kind: wire.MCP, URI: h.URL, Transport: wire.StreamableHTTP, Endpoint: h.URL, Timeout: 5 * time.Second, StartTimeout: 5 * time.Second}
	opened, err := target.Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return Env{Target: opened}, where
}

// TestRealServer runs every executor against a real server: what it kept in the
// end is what the trajectories say was carried out.
func TestRealServer(t *testing.T) {
	env, where := realServer(t)
	unit := func(u wire.Unit) *wire.Result {
		u.ID, u.Target = "u", where
		return run(t, env, &u)
	}
	survey := unit(wire.Unit{Kind: wire.SurveyUnit}).Survey
	tools := map[string]wire.Tool{}
	for _, tool := range survey.Tools {
		tools[tool.Name] = tool
	}
	add := tools["add_note"]
	if survey.Name != "notebook" || len(add.Args) == 0 || add.Required != 1 || add.ArgsError != "" {
		t.Fatalf("survey %+v", survey)
	}
	call := wire.CallSpec{OpIDSalt: "s", Tools: []wire.ToolCall{{Name: "add_note", Args: json.RawMessage(`{"text":"id {op_id}"}`), OutputSchema: add.OutputSchema}}}
	if p := unit(wire.Unit{Kind: wire.PreflightUnit, Call: call, Ops: wire.Range{From: 1000, To: 1001}}).Preflight; p.Outcome != metrics.OK {
		t.Fatalf("preflight %+v", p)
	}
	whole := wire.Range{From: 100, To: 160}
	closed := unit(wire.Unit{Kind: wire.LoadUnit, Call: call, Ops: whole, Load: &wire.Load{Workers: 4, Level: 4, Stage: whole, Warmup: 2, CheckOutput: true}})
	if s := closed.Tally; s.Successes() != 60 || closed.Calls != 62 || s.OutputChecked != 60 || s.OutputInvalid != 0 || s.Window.Workers != 4 {
		t.Errorf("closed loop: %v, %d calls, output %d/%d, window %+v", s.Outcomes, closed.Calls, s.OutputInvalid, s.OutputChecked, s.Window)
	}
	open := unit(wire.Unit{Kind: wire.LoadUnit, Call: call, Ops: wire.Range{From: 200, To: 220}, Load: &wire.Load{Workers: 2, Level: 2, Stage: wire.Range{From: 200, To: 220}, MilliRate: 400_000}})
	if w := open.Tally.Window; w.Scheduled != 20 || w.Sent != 20 || open.Tally.Successes() != 20 || open.Tally.Late.N() != 20 {
		t.Errorf("open loop: %v, window %+v", open.Tally.Outcomes, w)
	}
	ops := wire.Range{From: 300, To: 360}
	faults := mockFaults(400_000_000)
	faults.Kinds = []string{"server_error", "malformed", "response_lost", "connection_refused"}
	recovery := unit(wire.Unit{Kind: wire.RecoveryUnit, Call: call, Ops: ops, Faults: faults, Recovery: &wire.Recovery{MaxRetries: 2}})
	b := recovery.Behavior
	if b.Operations != 60 || b.Disrupted < 10 || b.CleanFailed != 0 {
		t.Errorf("behavior %+v", b)
	}
	oracle := unit(wire.Unit{Kind: wire.OracleUnit, Ops: ops, Oracle: &wire.Oracle{Tool: "list_notes", Args: json.RawMessage(`{}`), Salt: "s", Names: []string{"add_note"}}}).Oracle
	var effects int64
	for _, n := range oracle.Effects {
		effects += n
	}
	if written := 1 + 62 + 20 + recovery.Calls; oracle.Status != "ok" || oracle.Entries != written || effects != recovery.Calls {
		t.Errorf("oracle %s: %d entries, want %d; %d effects of %d calls that went out", oracle.Message, oracle.Entries, written, effects, recovery.Calls)
	}
	contract := unit(wire.Unit{Kind: wire.ContractUnit, Ops: wire.Range{To: 50}, Contract: &wire.Contract{Tool: add, Baseline: json.RawMessage(`{"text":"x"}`), MaxCases: 50}}).Contract
	if contract.Controls["ok"] != int64(contract.Total) || contract.Output.Violations != 0 || contract.Output.Checked == 0 {
		t.Errorf("controls %v of %d, output %+v", contract.Controls, contract.Total, contract.Output)
	}
	for _, k := range contract.Cases {
		if k.Forbidden && k.Outcome == metrics.OK || !k.Delivered {
			t.Errorf("%s: %v, delivered %v: %s", k.Label, k.Outcome, k.Delivered, k.Payload)
		}
	}
}
