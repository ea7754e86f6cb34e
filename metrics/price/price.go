package price

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// Rate is the price of one model in US dollars per 10^6 tokens.
type Rate struct {
	Input       float64 `json:"input"`
	Output      float64 `json:"output"`
	CachedInput float64 `json:"cached_input"` // input tokens served from the provider's prompt cache
}

// Cost returns US dollars for in input tokens, out output tokens, where cached
// of the input tokens came from the prompt cache:
//
//	((in - cached) * Input + cached * CachedInput + out * Output) / 10^6
//
// A cached count outside of 0..in is brought to the nearer end.
func (r Rate) Cost(in, out, cached int64) float64 {
	cached = min(max(cached, 0), in)
	return (float64(in-cached)*r.Input + float64(cached)*r.CachedInput + float64(out)*r.Output) / 1e6
}

// Table maps models to rates. The zero value and a nil table know no model.
type Table struct {
	AsOf   string // date of the prices as their source gives it; empty unknown
	Source string // "built-in", or the path of the file
	rates  map[string]Rate
}

// Match is the entry that prices a model.
type Match struct {
	Rate
	Model  string // the entry, which may lack the date of the model asked for
	Source string
	AsOf   string
}

// datedID finds a date at the end of a model id.
var datedID = regexp.MustCompile(`^(.+?)(?:[-@]20\d{6}|-20\d{2}-\d{2}-\d{2})$`)

// Lookup returns the entry for a model; false when there is none.
func (t *Table) Lookup(model string) (Match, bool) {
	if t == nil {
		return Match{}, false
	}
	model = strings.ToLower(strings.TrimSpace(model))
	names := []string{model}
	if m := datedID.FindStringSubmatch(model); m != nil {
		names = append(names, m[1])
	}
	for _, name := range names {
		if r, ok := t.rates[name]; ok {
			return Match{Rate: r, Model: name, Source: t.Source, AsOf: t.AsOf}, true
		}
	}
	return Match{}, false
}

// Models returns the number of entries.
func (t *Table) Models() int { return len(t.rates) }

// First looks a model up in several tables, in the order given: a user's file
// before the built-in one.
func First(model string, tables ...*Table) (Match, bool) {
	for _, t := range tables {
		if m, ok := t.Lookup(model); ok {
			return m, true
		}
	}
	return Match{}, false
}

// Builtin returns a small table of first-party list prices. It holds only
// models whose price was read in the provider's own documentation.
func Builtin() *Table {
	return &Table{AsOf: builtinAsOf, Source: "built-in", rates: maps.Clone(builtin)}
}

func (m Match) String() string {
	return fmt.Sprintf("%s: $%g in, $%g out, $%g cached in per 10^6 tokens (%s, %s)",
		m.Model, m.Input, m.Output, m.CachedInput, m.Source, asOf(m.AsOf))
}

func asOf(date string) string {
	if date == "" {
		return "undated"
	}
	return "as of " + date
}

// stored is a Table as it is kept with a run.
type stored struct {
	AsOf   string          `json:"as_of,omitempty"`
	Source string          `json:"source"`
	Rates  map[string]Rate `json:"rates"`
}

// MarshalJSON keeps the rates too.
func (t *Table) MarshalJSON() ([]byte, error) {
	return json.Marshal(stored{t.AsOf, t.Source, t.rates})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Table) UnmarshalJSON(data []byte) error {
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*t = Table{AsOf: s.AsOf, Source: s.Source, rates: s.Rates}
	return nil
}
