package lead

import (
	"context"
	"errors"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// Sign is what shows of the controller of a run from outside.
type Sign string

const (
	Answers Sign = "answers" // the run is led
	Gone    Sign = "gone"    // nobody leads it: Take would take it at once
	Silent  Sign = "silent"  // stopped, hanging or cut off: Take would wait for the end of its lease
)

// Look asks once who leads a run. Somebody whose process has just died may
// still be silent.
func Look(ctx context.Context, b *bus.Bus, run string) (sign Sign, holder string) {
	limited, cancel := context.WithTimeout(ctx, whoWait)
	defer cancel()
	answer, err := b.SendOrder(limited, run, wire.Order{Kind: wire.OrderWho})
	switch {
	case err == nil:
		return Answers, answer.Holder
	case errors.Is(err, bus.ErrGone):
		return Gone, ""
	}
	return Silent, ""
}
