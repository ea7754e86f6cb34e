package probe

import (
	"context"
	"testing"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

type noting struct {
	*fake
	notes []string
}

func (n *noting) Notes() []string { return n.notes }

// What a target noted before a unit is not that unit's, what it notes during it
// is.
func TestNotesOfAUnit(t *testing.T) {
	n := &noting{fake: &fake{}, notes: []string{"old"}}
	n.answer = func(context.Context, target.Call) metrics.Exchange {
		n.notes = []string{"old", "reply with an id nobody asked with"}
		return metrics.Exchange{Delivered: true}
	}
	env := n.env()
	env.Target = n
	tally := run(t, env, loadUnit(1, wire.Load{Workers: 1, Level: 1})).Tally
	if len(tally.Notes) != 1 || tally.Notes["reply with an id nobody asked with"] != 1 {
		t.Errorf("notes %v, want the one that came up during the unit", tally.Notes)
	}
}
