package spec

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"ordeal/agent/wire"
	"ordeal/agent/workload"
)

// maxFeederFile bounds a file before it is parsed: as JSON it is seldom smaller
// than a quarter, by columns that are not there.
const maxFeederFile = 4 * workload.MaxFeederBytes

func (r *workloadReader) feeders(n *yaml.Node, w *wire.Workload) {
	if n == nil {
		return
	}
	r.inFeeders = true
	defer func() { r.inFeeders = false }()
	all := r.mapping(n, "feeders")
	for i := 0; i+1 < len(n.Content); i += 2 { // in their order in the file
		name := n.Content[i].Value
		value := all[name]
		if value == nil || value.Line != n.Content[i+1].Line {
			continue
		}
		path := "feeders." + name
		f := wire.Feeder{Name: name}
		r.feederLines[name] = n.Content[i].Line
		r.feeder(&f, value, r.mapping(value, path, "file", "values", "order"), path)
		w.Feeders = append(w.Feeders, f)
	}
}

// feeder reads a table from a file or from values.
func (r *workloadReader) feeder(f *wire.Feeder, at *yaml.Node, keys map[string]*yaml.Node, path string) {
	was := r.inFeeders
	r.inFeeders = true
	defer func() { r.inFeeders = was }()
	if n := keys["order"]; n != nil {
		f.Order = r.text(n, path+".order")
	}
	file, values := keys["file"], keys["values"]
	switch {
	case keys == nil:
	case (file == nil) == (values == nil):
		r.fail(at.Line, path, "give either a file or values")
	case file != nil:
		name := r.text(file, path+".file")
		if err := r.readFile(f, name); err != nil {
			r.fail(file.Line, path+".file", "%v", err)
		}
	default:
		var rows []json.RawMessage
		for i, n := range r.items(values, path+".values") {
			rows = append(rows, r.json(n, fmt.Sprintf("%s.values[%d]", path, i)))
		}
		if err := fillRows(f, rows, func(i int) string { return fmt.Sprintf("value %d", i+1) }); err != nil && !r.badFeeder {
			r.fail(values.Line, path+".values", "%v", err)
		}
	}
}

// readFile reads a table by the ending of its name.
func (r *workloadReader) readFile(f *wire.Feeder, name string) error {
	parse := parserOf(name)
	if parse == nil {
		return fmt.Errorf("%.80q: want a name that ends in .csv, .jsonl or .txt", name)
	}
	data, err := r.open(name)
	if err != nil {
		return err
	}
	if len(data) > maxFeederFile {
		return fmt.Errorf("%s is %d KiB: the rows of all feeders may be %d KiB as JSON, every unit of work carries them; keep fewer rows or columns",
			name, len(data)>>10, workload.MaxFeederBytes>>10)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		return fmt.Errorf("%s is not UTF-8 text", name)
	}
	if err := parse(f, data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(f.Rows) == 0 {
		return fmt.Errorf("%s has no rows", name)
	}
	return nil
}

func parserOf(name string) func(*wire.Feeder, []byte) error {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return parseCSV
	case ".jsonl", ".ndjson":
		return parseJSONL
	case ".txt":
		return parseLines
	}
	return nil
}

// jsonColumn at the end of a CSV column's name says that its cells are JSON: a
// number, say. They are text otherwise.
const jsonColumn = ":json"

func parseCSV(f *wire.Feeder, data []byte) error {
	read := csv.NewReader(bytes.NewReader(data))
	header, err := read.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("is empty: want a first line with the names of the columns")
	}
	if err != nil {
		return err
	}
	typed := make([]bool, len(header))
	for i, name := range header {
		name, typed[i] = strings.CutSuffix(strings.TrimSpace(name), jsonColumn)
		f.Columns = append(f.Columns, name)
	}
	if err := checkColumns(f.Columns); err != nil {
		return err
	}
	for {
		record, err := read.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		row := make([]json.RawMessage, len(record))
		for i, cell := range record {
			if row[i] = jsonText(cell); !typed[i] {
				continue
			}
			if row[i] = json.RawMessage(strings.TrimSpace(cell)); !json.Valid(row[i]) {
				line, _ := read.FieldPos(i)
				return fmt.Errorf("line %d: column %s: %.40q is not JSON", line, f.Columns[i], cell)
			}
		}
		f.Rows = append(f.Rows, row)
	}
}

func parseJSONL(f *wire.Feeder, data []byte) error {
	var rows []json.RawMessage
	var lines []int
	for i, line := range bytes.Split(data, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			return fmt.Errorf("line %d is not JSON", i+1)
		}
		rows, lines = append(rows, line), append(lines, i+1)
	}
	return fillRows(f, rows, func(i int) string { return fmt.Sprintf("line %d", lines[i]) })
}

// parseLines reads one value a line, those without any left out.
func parseLines(f *wire.Feeder, data []byte) error {
	f.Columns = []string{"line"}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" {
			f.Rows = append(f.Rows, []json.RawMessage{jsonText(line)})
		}
	}
	return nil
}

// fillRows makes a table of JSON values: objects with the same keys, which are
// the columns, or anything else in a column called value.
func fillRows(f *wire.Feeder, rows []json.RawMessage, place func(i int) string) error {
	for i, raw := range rows {
		keys, values, err := members(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", place(i), err)
		}
		if i == 0 {
			f.Columns = keys
			if err := checkColumns(keys); err != nil {
				return fmt.Errorf("%s: %w", place(i), err)
			}
		}
		row := make([]json.RawMessage, len(f.Columns))
		for c, name := range f.Columns {
			k := slices.Index(keys, name)
			if k < 0 {
				return fmt.Errorf("%s has no %.60q: want the same keys everywhere, %s", place(i), name, strings.Join(f.Columns, ", "))
			}
			row[c] = values[k]
		}
		if len(keys) > len(f.Columns) {
			extra := slices.IndexFunc(keys, func(k string) bool { return !slices.Contains(f.Columns, k) })
			return fmt.Errorf("%s has %.60q, which %s has not: want the same keys everywhere", place(i), keys[extra], place(0))
		}
		f.Rows = append(f.Rows, row)
	}
	return nil
}

// members are an object's, in their order; any other value is one called value.
func members(raw json.RawMessage) (keys []string, values []json.RawMessage, err error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return []string{"value"}, []json.RawMessage{raw}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		key := token.(string) // of an object, which is valid JSON
		if slices.Contains(keys, key) {
			return nil, nil, fmt.Errorf("key %.60q is given twice", key)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, err
		}
		keys, values = append(keys, key), append(values, value)
	}
	return keys, values, nil
}

// checkColumns refuses names that ${...} could not say, and those given twice.
func checkColumns(names []string) error {
	if len(names) == 0 {
		return errors.New("has no columns")
	}
	for i, name := range names {
		switch {
		case name == "":
			return fmt.Errorf("column %d has no name", i+1)
		case strings.ContainsAny(name, "{}()\",\n"):
			return fmt.Errorf("column %.60q: a name cannot hold { } ( ) , or a quote", name)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("column %.60q is there twice", name)
		}
	}
	return nil
}
