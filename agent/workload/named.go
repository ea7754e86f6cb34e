package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// isNamed tells whether a feeder or variable of the scenario has the name.
func (c *compiler) isNamed(name string) bool { return c.later[name] > 0 || c.isFeeder(name) }

func (c *compiler) isFeeder(name string) bool {
	return slices.ContainsFunc(c.plan.feeders, func(f feeder) bool { return f.name == name })
}

// named reads an expression that is no generator: a variable, or a feeder.
func (c *compiler) named(expr string) (value, error) {
	if slot, found := c.slots[expr]; found && slices.Contains(c.known, expr) {
		return value{kind: variable, slot: slot}, nil
	}
	name, _, _ := strings.Cut(expr, ".")
	switch step := c.later[expr]; {
	case expr == "":
		return value{}, errors.New("is empty: " + c.names())
	case c.isFeeder(name):
		f, column, err := c.column(expr)
		return value{kind: feederColumn, feeder: f, column: column}, err
	case step > 0:
		return value{}, fmt.Errorf("is extracted by step %d only, after it is used here", step)
	case strings.HasPrefix(expr, "env:") || strings.HasPrefix(expr, "file:"):
		return value{}, errors.New("is a reference to a secret: those go into headers and the environment of the target, not into what is called")
	case expr == "timestamp" || expr == "now":
		return value{}, errors.New("would differ from run to run: write now_ms if that is meant")
	}
	return value{}, fmt.Errorf("is not known: %s", c.names())
}

// mostNames is how many names of a sort a message lists.
const mostNames = 20

// names lists what ${...} can hold.
func (c *compiler) names() string {
	var feeders []string
	for _, f := range c.plan.feeders {
		feeders = append(feeders, f.name)
	}
	return fmt.Sprintf("feeders are %s; variables so far %s; generators %s", list(feeders), list(c.known), c.generatorNames())
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	if len(names) > mostNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
	}
	return strings.Join(names, ", ")
}

// column finds FEEDER or FEEDER.COLUMN; the first will do where there is only one.
func (c *compiler) column(expr string) (at, column int, err error) {
	name, wanted, dotted := strings.Cut(expr, ".")
	at = slices.IndexFunc(c.plan.feeders, func(f feeder) bool { return f.name == name })
	if at < 0 {
		return 0, 0, fmt.Errorf("%.40q is no feeder: %s", name, c.names())
	}
	f := &c.plan.feeders[at]
	column = slices.Index(f.columns, wanted)
	switch {
	case !dotted && len(f.columns) == 1:
		return at, 0, nil
	case !dotted:
		return 0, 0, fmt.Errorf("feeder %s has several columns: write %s.COLUMN, one of %s", name, name, list(f.columns))
	case column < 0:
		return 0, 0, fmt.Errorf("feeder %s has no column %.40q: it has %s", name, wanted, list(f.columns))
	}
	return at, column, nil
}

// readChoice reads the options between the bars.
func readChoice(inside string) (value, error) {
	v := value{kind: oneOfSeveral}
	if strings.TrimSpace(inside) == "" {
		return v, errors.New("want choice(a|b|c)")
	}
	for _, option := range options(inside) {
		v.options = append(v.options, newCell(typed(strings.TrimSpace(option))))
	}
	return v, nil
}

// options cuts at the bars outside of double quotes.
func options(inside string) []string {
	var out []string
	from, quoted := 0, false
	for i := 0; i < len(inside); i++ {
		switch {
		case quoted && inside[i] == '\\':
			i++
		case inside[i] == '"':
			quoted = !quoted
		case inside[i] == '|' && !quoted:
			out = append(out, inside[from:i])
			from = i + 1
		}
	}
	return append(out, inside[from:])
}

// typed is an option as JSON: what is a number, true, false, null or a quoted
// string is that, all else is text.
func typed(option string) []byte {
	if json.Valid([]byte(option)) && option[0] != '{' && option[0] != '[' {
		return []byte(option)
	}
	return quoted(option)
}
