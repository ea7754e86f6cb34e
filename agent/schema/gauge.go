package schema

import (
	"fmt"
	"time"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const (
	verdictUnits = 200_000 // schema nodes visited for one verdict, about 0.2 s
	maxWorlds    = 64      // combinations of unknown matches tried for one verdict
	unitsPerTick = 1024
)

// budget bounds one call from outside. The units are what normally ends the
// work, so that results do not depend on the speed of the machine; the clock is
// the second line for schemas whose units are unusually dear.
type budget struct {
	left  int64
	until time.Time
	ticks int64
	dry   bool
}

func newBudget(units int64, limit time.Duration) *budget {
	return &budget{left: units, until: time.Now().Add(limit)}
}

// spend takes n units and reports ErrTooCostly once nothing is left, for good.
func (b *budget) spend(n int64) error {
	b.left -= n
	b.ticks += n
	if b.ticks >= unitsPerTick {
		b.ticks = 0
		b.dry = b.dry || time.Now().After(b.until)
	}
	if b.dry || b.left < 0 {
		b.dry = true
		return ErrTooCostly
	}
	return nil
}

// guess is one question that a pattern cannot answer.
type guess struct{ pattern, text string }

// gauge sits inside every node of a compiled schema and counts the work of the
// verdict that is being found. The engine has no way to be interrupted, so the
// gauge unwinds it by a panic that [Schema.judge] takes back.
type gauge struct {
	spend   *budget
	left    int64
	answers map[guess]bool
	order   []guess

	patterns int // instructions of the patterns compiled so far
}

// spent is the value of the gauge's own panic.
type spent struct{}

func (g *gauge) charge(n int64) {
	if g.spend == nil {
		return // outside a verdict: the engine compiling the schema
	}
	g.left -= n
	if g.left < 0 || g.spend.spend(n) != nil {
		panic(spent{})
	}
}

// guess answers yes at first; next turns the answers over one by one.
func (g *gauge) guess(pattern, text string) bool {
	g.charge(1)
	if g.answers == nil {
		return true
	}
	q := guess{pattern, text}
	yes, known := g.answers[q]
	if !known {
		yes = true
		g.answers[q] = yes
		g.order = append(g.order, q)
	}
	return yes
}

// next moves on to the next combination of answers and reports false after the last.
func (g *gauge) next() bool {
	for i := len(g.order) - 1; i >= 0; i-- {
		q := g.order[i]
		if g.answers[q] {
			g.answers[q] = false
			return true
		}
		delete(g.answers, q)
		g.order = g.order[:i]
	}
	return false
}

// run lets the engine judge v in the current combination of answers.
func (g *gauge) run(node *engine.Schema, v any) (refusal *engine.ValidationError, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case spent:
			err = fmt.Errorf("%w: %w", ErrUndecided, ErrTooCostly)
		default:
			// A hostile schema that trips the engine must cost its own verdict, not the agent.
			err = fmt.Errorf("%w: the engine gave up: %v", ErrUndecided, r)
		}
	}()
	verr, _ := node.Validate(v).(*engine.ValidationError)
	return verr, nil
}

// judge finds the verdict of node on v: (nil, nil) valid, a refusal, or ErrUndecided.
// With opaque patterns it is refused only if it is refused whatever they answer.
func (s *Schema) judge(node *engine.Schema, v any, b *budget) (*engine.ValidationError, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gauge
	g.spend, g.left = b, verdictUnits
	g.answers, g.order = map[guess]bool{}, nil
	defer func() { g.spend, g.answers, g.order = nil, nil, nil }()
	var first *engine.ValidationError
	for range maxWorlds {
		refusal, err := g.run(node, v)
		if err != nil || refusal == nil {
			return nil, err
		}
		if cyclic(refusal) {
			return nil, fmt.Errorf("%w: a $ref leads back to itself", ErrUndecided)
		}
		if first == nil {
			first = refusal
		}
		if !g.next() {
			return first, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrUndecided, ErrPattern)
}

func cyclic(e *engine.ValidationError) bool {
	if _, ok := e.ErrorKind.(*kind.RefCycle); ok {
		return true
	}
	for _, c := range e.Causes {
		if cyclic(c) {
			return true
		}
	}
	return false
}
