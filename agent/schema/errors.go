package schema

import "errors"

// Reasons for which a schema is not compiled. A tool with such a schema is
// unmeasured, not failed.
var (
	// ErrNoSchema: the tool declares no schema at all (absent or null).
	ErrNoSchema = errors.New("no schema")
	// ErrNotSchema: not JSON, neither an object nor a boolean, or refused by the metaschema of its draft.
	ErrNotSchema = errors.New("not a JSON Schema")
	// ErrRemoteRef: a reference leads out of the document. It is named and never fetched.
	ErrRemoteRef = errors.New("reference to another document is not fetched")
	// ErrDanglingRef: a reference into the document points at nothing.
	ErrDanglingRef = errors.New("reference points at nothing")
	// ErrTooLarge: a size, depth or number beyond what is handled here.
	ErrTooLarge = errors.New("too large")
)

// Reasons for which [Synthesize] declines; each arrives wrapped in a [*Decline].
var (
	// ErrNoFiniteInstance: the schema contradicts itself or requires itself without end.
	ErrNoFiniteInstance = errors.New("no finite instance")
	// ErrNotFound: the bounded search found no instance; one may exist.
	ErrNotFound = errors.New("no instance found")
	// ErrPattern: no text could be derived from a pattern and none is given as default, example or enum.
	ErrPattern = errors.New("pattern not understood")
	// ErrEmpty: a required field could be filled only with [] or "", which says nothing about the tool.
	ErrEmpty = errors.New("a required field could only be left empty")
	// ErrTooDeep: the smallest instance nests deeper than 64 levels.
	ErrTooDeep = errors.New("nested too deeply")
	// ErrNotObject: the schema admits no JSON object, so it cannot describe arguments.
	ErrNotObject = errors.New("arguments must be an object")
)

var (
	// ErrUndecided: neither valid nor refused, because the verdict hangs on a
	// pattern that is not understood, on an endless $ref cycle or on too much work.
	ErrUndecided = errors.New("undecided")
	// ErrTooCostly: the work allowed for one call is used up.
	ErrTooCostly = errors.New("too costly")
	// ErrBaseline: the baseline handed to [Cases] is not valid itself, so that no refusal could be attributed.
	ErrBaseline = errors.New("baseline does not satisfy the schema")
	// ErrNoOutput: a tool with an output schema answered without structured content.
	ErrNoOutput = errors.New("no structured content")
)

// A Decline says where and why no arguments could be made.
// errors.Is sees through it to the reason.
type Decline struct {
	Path   string // JSON pointer of the field, "" for the arguments as a whole
	Reason error  // one of the sentinel errors above
}

func (d *Decline) Error() string {
	if d.Path == "" {
		return "arguments: " + d.Reason.Error()
	}
	return "arguments at " + oneLine(d.Path) + ": " + d.Reason.Error()
}

func (d *Decline) Unwrap() error { return d.Reason }

// declined puts the place in front of a reason, keeping the innermost place first.
func declined(token string, err error) error {
	at := "/" + escapeToken(token)
	if d, ok := errors.AsType[*Decline](err); ok {
		return &Decline{Path: at + d.Path, Reason: d.Reason}
	}
	return &Decline{Path: at, Reason: err}
}
