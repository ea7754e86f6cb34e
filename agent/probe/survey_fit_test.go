package probe

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ordeal/agent/wire"
)

// A catalogue beyond what a message carries keeps every name, and the schemas of
// the tools that come first.
func TestFit(t *testing.T) {
	schema := json.RawMessage(`{"description":"` + strings.Repeat("x", 2000) + `"}`)
	tools := make([]wire.Tool, 10_000)
	for i := range tools {
		tools[i] = wire.Tool{Name: fmt.Sprintf("t%d", i), Description: strings.Repeat("é", 3000), InputSchema: schema, Args: json.RawMessage(`{}`)}
	}
	whole := fit(tools)
	raw, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > wire.MaxPayload*3/4 || whole < 1000 || whole == len(tools) {
		t.Errorf("%d bytes with %d whole tools, want it to fit one message of %d", len(raw), whole, wire.MaxPayload)
	}
	last := tools[len(tools)-1]
	if last.Name != "t9999" || last.InputSchema != nil || last.ArgsError == "" {
		t.Errorf("last tool %+v, want its name and the reason why nothing else is there", last)
	}
	if small := tools[:3]; fit(small) != 3 {
		t.Error("a small catalogue was cut")
	}
}
