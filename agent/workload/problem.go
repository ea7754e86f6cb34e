package workload

import (
	"errors"
	"fmt"
)

// Problem is one mistake in a workload.
type Problem struct {
	Feeder   string // its name, where it is about one
	Scenario int    // index, -1 where it is about none
	Step     int    // index in the scenario, -1 where it is about none
	Place    string // for people, such as: scenario "search", step "open"
	Text     string
}

func (p *Problem) Error() string {
	if p.Place == "" {
		return "workload: " + p.Text
	}
	return p.Place + ": " + p.Text
}

// compiler collects problems on its way through a workload.
type compiler struct {
	plan     *Plan
	at       Problem // place of what is looked at
	problems []error

	slots  map[string]int // variables of the scenario
	known  []string       // those extracted so far, in order
	later  map[string]int // those of the scenario, by the step (from 1) that extracts them
	lane   uint32         // next free one of the step
	member string         // name of the argument that is looked at
}

func (c *compiler) fail(format string, args ...any) {
	p := c.at
	p.Text = fmt.Sprintf(format, args...)
	c.problems = append(c.problems, &p)
}

// failArg fails at the argument that is looked at.
func (c *compiler) failArg(err error) {
	if c.member == "" {
		c.fail("args: %v", err)
		return
	}
	c.fail("args: %.60q: %v", c.member, err)
}

func (c *compiler) err() error { return errors.Join(c.problems...) }

func nowhere() Problem { return Problem{Scenario: -1, Step: -1} }
