package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

var errNoList = errors.New("no list of entries in the answer; name it by its dotted path")

// opIDText is what OpID makes.
var opIDText = regexp.MustCompile(`ordeal-[0-9a-f]{12}`)

// oracle reads the target's state through a read-only tool and counts, for each
// operation of the unit, the entries that hold its id. An answer it cannot read
// is a failed oracle, not a failed unit.
func oracle(ctx context.Context, env *Env, u *wire.Unit, res *wire.Result) error {
	session, err := env.Target.Session(ctx, 0)
	if err != nil {
		return err
	}
	may := env.may()
	if _, err := may.take(ctx); err != nil {
		return err
	}
	x := session.Call(ctx, target.Call{Op: u.Ops.From, Label: oracleLabel, Tool: u.Oracle.Tool, Args: u.Oracle.Args, Level: 1, Keep: true})
	res.Calls = 1
	res.Oracle = &wire.OracleResult{Status: "failed"}
	if !x.Ok() {
		res.Oracle.Message = fmt.Sprintf("%s answered %s: %s", u.Oracle.Tool, x.Outcome, x.Message)
		return nil
	}
	entries, err := entriesOf(&x, u.Oracle.Path)
	if err != nil {
		res.Oracle.Message = oneLine(u.Oracle.Tool + ": " + err.Error())
		return nil
	}
	res.Oracle.Status, res.Oracle.Entries = "ok", int64(len(entries))
	res.Oracle.Effects = countEffects(entries, u)
	return nil
}

// countEffects counts entries by the operation whose id they hold. An entry
// that holds an id twice counts once.
func countEffects(entries []any, u *wire.Unit) map[uint64]int64 {
	names := u.Oracle.Names
	if len(names) == 0 {
		return nil
	}
	owner := make(map[string]uint64, u.Ops.Len())
	for op := u.Ops.From; op < u.Ops.To; op++ {
		owner[OpID(u.Oracle.Salt, names[op%uint64(len(names))], op)] = op
	}
	effects := map[uint64]int64{}
	for _, entry := range entries {
		text, err := json.Marshal(entry) // undoes whatever escapes the server used
		if err != nil {
			continue // entries come out of a JSON document and go back into one
		}
		held := map[uint64]bool{}
		for _, id := range opIDText.FindAllString(string(text), -1) {
			if op, ours := owner[id]; ours {
				held[op] = true
			}
		}
		for op := range held {
			effects[op]++
		}
	}
	return effects
}

// entriesOf finds the list in an answer: in its structured content, in its text
// as one JSON document, or in its text as one document per line.
func entriesOf(x *metrics.Exchange, path string) ([]any, error) {
	var doc any
	if len(x.Structured) > 0 && json.Unmarshal(x.Structured, &doc) == nil {
		if list, err := listIn(doc, path); err == nil || x.Text == "" {
			return list, err
		}
	}
	if json.Unmarshal([]byte(x.Text), &doc) == nil {
		return listIn(doc, path)
	}
	var lines []any
	for line := range strings.Lines(x.Text) {
		var entry any
		if strings.TrimSpace(line) == "" {
			continue
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			return nil, errNoList
		}
		lines = append(lines, entry)
	}
	if path != "" || len(lines) == 0 {
		return nil, errNoList
	}
	return lines, nil
}

// listIn follows a dotted path, or finds the only list that is not inside
// another list.
func listIn(doc any, path string) ([]any, error) {
	if path == "" {
		found := lists(doc, nil)
		switch len(found) {
		case 0:
			return nil, errNoList
		case 1:
			return found[0], nil
		}
		return nil, fmt.Errorf("%d lists in the answer; name the right one by its dotted path", len(found))
	}
	at := doc
	for step := range strings.SplitSeq(path, ".") {
		fields, ok := at.(map[string]any)
		if at, ok = fields[step], ok && fields[step] != nil; !ok {
			return nil, fmt.Errorf("no %q of the path %q in the answer", step, path)
		}
	}
	list, ok := at.([]any)
	if !ok {
		return nil, fmt.Errorf("%q is not a list in the answer", path)
	}
	return list, nil
}

func lists(v any, found [][]any) [][]any {
	switch v := v.(type) {
	case []any:
		return append(found, v)
	case map[string]any:
		for _, field := range v {
			found = lists(field, found)
		}
	}
	return found
}
