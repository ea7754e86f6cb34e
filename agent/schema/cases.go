package schema

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Case is one payload that differs from the baseline in one place.
type Case struct {
	Kind    Kind
	Keyword string // schema keyword that the payload is aimed at
	Path    string // JSON pointer of the corrupted place, "" for the arguments as a whole
	Label   string // kind[path] on one line, unique within a Set; the path of a top-level field is its name
	Payload json.RawMessage

	// Forbidden: the schema refuses the payload, so a tool that accepts it breaks
	// its own contract. Otherwise the payload is valid and only tells how permissive the contract is.
	Forbidden bool
	Why       string // the refusal in one line, "" when not Forbidden

	// CarriesBaseline: some value of the baseline is still in its place, so a tool
	// that rejects its own baseline may have rejected the payload for that value.
	CarriesBaseline bool

	// Compat: one of the cases of the eight classic kinds as they are classically
	// sent: on top-level fields, one bound of a range, an unknown member only where the schema is closed.
	Compat bool
}

// Options bound and narrow the cases. The zero value of a field stands for its default.
type Options struct {
	MaxCases      int           // most cases returned, 256 by default; kinds get equal shares
	MaxText       int           // longest text in a payload in characters, 1 MiB by default
	MaxDepth      int           // levels below the arguments that are corrupted, 6 by default
	MaxTime       time.Duration // wall-clock limit of each of three steps, 1 s by default; an ordinary schema takes milliseconds
	ReferenceOnly bool          // only Compat cases
}

func (o Options) withDefaults() Options {
	return Options{
		MaxCases:      cmp.Or(max(o.MaxCases, 0), 256),
		MaxText:       cmp.Or(max(o.MaxText, 0), 1<<20),
		MaxDepth:      cmp.Or(max(o.MaxDepth, 0), 6),
		MaxTime:       cmp.Or(max(o.MaxTime, 0), time.Second),
		ReferenceOnly: o.ReferenceOnly,
	}
}

// A Set is what Cases found, in the order of the schema's places.
type Set struct {
	Cases     []Case
	LeftOut   int  // candidates that MaxCases or the work limit kept out; some of them might have turned out valid
	Undecided int  // candidates without verdict, dropped
	CutShort  bool // the work or time limit ended the search before all places were seen
}

const (
	casesUnits = 1_000_000
	hashUnits  = 100_000 // kilobytes of payload compared
)

// Cases derives the minimal violations of a schema from a valid baseline. Every
// payload is judged by the schema; one that turns out valid is kept only for
// kinds where that says something. The same schema, baseline and options give the
// same set. The error is ErrBaseline when the baseline is not valid, or
// says why the baseline cannot be read.
func Cases(s *Schema, baseline json.RawMessage, opt Options) (Set, error) {
	opt = opt.withDefaults()
	doc, err := readValue(baseline)
	if err != nil {
		return Set{}, fmt.Errorf("baseline: %w", err)
	}
	b := newBudget(casesUnits, opt.MaxTime)
	if err := s.verdict(doc, "", b); err != nil {
		return Set{}, fmt.Errorf("%w: %w", ErrBaseline, err)
	}
	w := newWalker(s, b, doc, opt)
	w.arguments()
	cut := b.dry || w.full
	set := w.selectFair()
	set.CutShort = cut || w.b.dry
	return set, nil
}

// edit is one change of a document, carried out when the result is needed:
// thousands of candidates share one document.
type edit struct {
	doc   any
	path  []string
	gone  []string // members of the object at path to leave out; none: put value there
	value any
}

func (e edit) apply() any {
	if len(e.gone) > 0 {
		return drop(e.doc, e.path, e.gone...)
	}
	return put(e.doc, e.path, e.value)
}

// seed is a candidate: the change and what it is meant to be.
type seed struct {
	edit
	kind    Kind
	keyword string
	path    []string // the corrupted place, which an edit may reach by replacing what is around it
	detail  string   // takes the place of the path in the label
	compat  bool
	index   int
}

// selectFair drops duplicates, then takes candidates from each kind in turn,
// shallow places first, and judges each until MaxCases are found.
func (w *walker) selectFair() Set {
	var set Set
	queues := w.byKind(&set)
	// Judging has a budget of its own, so that a search cut short still yields its cases.
	w.b = newBudget(casesUnits, w.opt.MaxTime)
	picked := map[int]Case{}
	for waiting := true; waiting; {
		waiting = false
		for i, q := range queues {
			if len(q) == 0 {
				continue
			}
			if len(picked) == w.opt.MaxCases || w.b.dry {
				set.LeftOut += len(q)
				queues[i] = nil
				continue
			}
			waiting = true
			queues[i] = q[1:]
			c, keep, err := w.judge(q[0])
			switch {
			case errors.Is(err, ErrTooCostly) && w.b.dry:
				set.LeftOut++
			case err != nil:
				set.Undecided++
			case keep:
				picked[q[0].index] = c
			}
		}
	}
	for i := range w.seeds {
		if c, ok := picked[i]; ok {
			set.Cases = append(set.Cases, c)
		}
	}
	labelAll(set.Cases)
	return set
}

// byKind sorts the candidates into one queue per kind. Of equal payloads the one of the earliest kind stays.
func (w *walker) byKind(set *Set) [][]seed {
	for i := range w.seeds {
		w.seeds[i].index = i
	}
	ordered := slices.Clone(w.seeds)
	slices.SortStableFunc(ordered, func(a, b seed) int {
		return cmp.Or(cmp.Compare(rank(a.kind), rank(b.kind)), cmp.Compare(len(a.path), len(b.path)))
	})
	seen := map[[sha256.Size]byte]bool{sha256.Sum256(nil): true} // the baseline itself differs in nothing
	queues := make([][]seed, len(kinds))
	size := len(encode(w.doc))
	hashing := newBudget(hashUnits, w.opt.MaxTime)
	for _, c := range ordered {
		if w.opt.ReferenceOnly && !c.compat {
			continue
		}
		if hashing.dry {
			set.LeftOut++
			continue
		}
		difference := differences(nil, w.doc, c.apply(), "")
		_ = hashing.spend(int64(1 + (size+len(difference))/1000)) // the flag is read above
		sum := sha256.Sum256(difference)
		if !seen[sum] {
			seen[sum] = true
			queues[rank(c.kind)] = append(queues[rank(c.kind)], c)
		}
	}
	return queues
}

// judge turns a candidate into a case; keep is false for valid payloads of no interest.
func (w *walker) judge(c seed) (out Case, keep bool, err error) {
	doc := c.apply()
	verdict := w.s.verdict(doc, pointer(c.path), w.b)
	refusal, forbidden := forbids(verdict)
	if verdict != nil && !forbidden {
		return Case{}, false, verdict
	}
	if !forbidden && !c.kind.permissive() {
		return Case{}, false, nil
	}
	out = Case{
		Kind: c.kind, Keyword: c.keyword, Path: pointer(c.path), Label: c.label(),
		Payload: encode(doc), Forbidden: forbidden, Compat: c.compat,
		CarriesBaseline: carries(w.doc, doc),
	}
	if forbidden {
		out.Why = refusal.Error()
	}
	return out, true, nil
}

// label is short and printable even where the names of a schema are not.
func (c seed) label() string {
	switch {
	case c.detail != "":
		return string(c.kind) + "[" + c.detail + "]"
	case len(c.path) == 0:
		return string(c.kind)
	}
	return string(c.kind) + "[" + oneLine(pointer(c.path)[1:]) + "]"
}

// labelAll numbers the second and later cases of one kind at one place.
func labelAll(cases []Case) {
	count := map[string]int{}
	for i := range cases {
		l := cases[i].Label
		if count[l]++; count[l] > 1 {
			cases[i].Label = fmt.Sprintf("%s#%d", l, count[l])
		}
	}
}

// Strictness counts the cases that the schema forbids among the Compat cases of a
// set. schema_strictness = forbidden / possible, summed over all probed tools.
func (s Set) Strictness() (forbidden, possible int) {
	for _, c := range s.Cases {
		if c.Compat {
			possible++
			if c.Forbidden {
				forbidden++
			}
		}
	}
	return forbidden, possible
}

// Declarable reports whether the schema demands anything at all: whether it
// refuses the empty arguments {}. A tool that demands nothing can hardly be called too permissive.
func (s *Schema) Declarable() bool {
	_, refused := forbids(s.Validate(json.RawMessage("{}")))
	return refused
}
