package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"ordeal/agent/wire"
	"ordeal/faultproxy/schedule"
)

// feeder is a table of which an operation takes one row: the one its number
// points to, or a drawn one.
type feeder struct {
	name    string
	columns []string
	rows    [][]cell
	random  bool
	key     schedule.RuleKey
	corpora map[int]*corpus // by column, where a text is made of it
}

// cell is a JSON value and how it looks inside a longer string.
type cell struct{ lone, inside []byte }

func newCell(value []byte) cell { return cell{value, appendInside(nil, value)} }

// validName is a name that ${...} can tell from anything else.
var validName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,59}$`)

const nameRule = "a name is a letter or _, then letters, digits, _ and -, at most 60 in all"

// addFeeders checks and prepares all feeders.
func (c *compiler) addFeeders(all []wire.Feeder) {
	size := 0
	for i := range all {
		f := &all[i]
		c.at = nowhere()
		c.at.Feeder, c.at.Place = f.Name, fmt.Sprintf("feeder %.60q", f.Name)
		c.nameFree(f.Name)
		if c.isFeeder(f.Name) {
			c.fail("is there twice")
		}
		c.plan.feeders = append(c.plan.feeders, c.feeder(f))
		size += RowBytes(f)
	}
	c.at = nowhere()
	if size > MaxFeederBytes {
		c.fail("the rows of its feeders are %d KiB as JSON: want at most %d KiB, every unit of work carries them; keep fewer rows or columns",
			(size+1023)>>10, MaxFeederBytes>>10)
	}
}

// RowBytes is what the rows of a feeder add to MaxFeederBytes.
func RowBytes(f *wire.Feeder) (n int) {
	for _, row := range f.Rows {
		n += 2
		for _, v := range row {
			n += len(v) + 1
		}
	}
	return n
}

// nameFree checks the name of a feeder or variable.
func (c *compiler) nameFree(name string) {
	switch g := findGenerator(name); {
	case !validName.MatchString(name):
		c.fail("%.60q is no name: %s", name, nameRule)
	case g != nil && !g.takesArgs():
		c.fail("%q is the name of a generator: choose another", name)
	}
}

func (c *compiler) feeder(f *wire.Feeder) feeder {
	made := feeder{name: f.Name, columns: f.Columns, random: f.Order == "random", key: schedule.KeyOf("workload/feeder/" + f.Name)}
	if f.Order != "" && f.Order != "sequential" && f.Order != "random" {
		c.fail("order is %.20q: want sequential or random", f.Order)
	}
	for i, column := range f.Columns {
		if column == "" || slices.Contains(f.Columns[:i], column) {
			c.fail("column %d, %.60q, has no name of its own", i+1, column)
		}
	}
	if len(f.Columns) == 0 || len(f.Rows) == 0 {
		c.fail("has %d columns and %d rows: want at least one of each", len(f.Columns), len(f.Rows))
	}
	for i, row := range f.Rows {
		cells, err := cellsOf(row, len(f.Columns))
		if err != nil {
			c.fail("row %d: %v", i+1, err)
			break // the others are hardly better
		}
		made.rows = append(made.rows, cells)
	}
	return made
}

func cellsOf(row []json.RawMessage, columns int) ([]cell, error) {
	if len(row) != columns {
		return nil, fmt.Errorf("has %d values: want %d, one a column", len(row), columns)
	}
	cells := make([]cell, len(row))
	for i, v := range row {
		var doc bytes.Buffer
		if err := json.Compact(&doc, v); err != nil {
			return nil, fmt.Errorf("value %d is not JSON: %v", i+1, err)
		}
		cells[i] = newCell(bytes.ToValidUTF8(doc.Bytes(), []byte("\uFFFD")))
	}
	return cells, nil
}

// row is the one that an operation takes.
func (f *feeder) row(s schedule.Stream, op uint64) uint64 {
	if f.random {
		return schedule.Below(s.Draw(f.key, op, 0, laneWhole), uint64(len(f.rows)))
	}
	return op % uint64(len(f.rows))
}
