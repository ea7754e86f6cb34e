package mcp

import (
	"encoding/json"
	"fmt"
)

// progress checks the progress notifications of one call. It extends no
// deadline: a call has one limit, whatever its server promises.
type progress struct {
	wanted bool // the request carried a token
	count  int
	last   float64
	notes  []string
}

// maxProgressNotes bounds the notes of one call.
const maxProgressNotes = 4

type progressParams struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress *float64        `json:"progress"`
}

func (p *progress) see(id int64, params json.RawMessage) {
	var in progressParams
	if json.Unmarshal(params, &in) != nil || in.Progress == nil {
		p.note("progress without a value")
		return
	}
	p.count++
	n, exact, ok := numericID(in.Token)
	switch {
	case !p.wanted:
		p.note("progress for a call that sent no token")
	case !ok || n != id:
		p.note("progress with a foreign token")
	case !exact:
		p.note(fmt.Sprintf("progress token came back as %s, was integer", idType(in.Token)))
	}
	if p.count > 1 && *in.Progress <= p.last {
		p.note(fmt.Sprintf("progress did not increase: %g after %g", *in.Progress, p.last))
	}
	p.last = *in.Progress
}

func (p *progress) note(text string) {
	for _, old := range p.notes {
		if old == text {
			return
		}
	}
	if len(p.notes) < maxProgressNotes {
		p.notes = append(p.notes, text)
	}
}
