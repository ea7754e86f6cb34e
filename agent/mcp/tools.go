package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

const (
	maxPages = 1000    // of tools/list
	maxTools = 100_000 // in all
)

// ListTools reads the whole catalogue, page by page. A tool that cannot be read
// costs the others nothing. Notes tell what was odd about the list. The error is
// a *StartError, unless ctx ended: a server that does not list its tools cannot
// be measured.
func (s *Session) ListTools(ctx context.Context) (tools []wire.Tool, notes []string, err error) {
	list := catalogue{c: s.c, names: map[string]bool{}}
	seen := map[string]bool{}
	cursor := ""
	for page := 1; ; page++ {
		next, err := s.page(ctx, &list, cursor)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case next == nil:
		case seen[*next]:
			list.note(fmt.Sprintf("tools/list repeats a cursor: stopped after %d pages", page))
		case page == maxPages || len(list.tools) >= maxTools:
			list.note(fmt.Sprintf("tools/list does not end: stopped at %d tools", len(list.tools)))
		default:
			cursor = *next
			seen[cursor] = true
			continue
		}
		s.learn(list.tools)
		return list.tools, list.notes, nil
	}
}

// page reads one page and returns the cursor of the next.
func (s *Session) page(ctx context.Context, into *catalogue, cursor string) (next *string, err error) {
	raw, x := s.Raw(ctx, "tools/list", cursorParams(cursor))
	if x.Outcome == metrics.Cancelled {
		return nil, context.Cause(ctx)
	}
	if x.Outcome != metrics.OK {
		return nil, s.c.startError(&x, "tools/list")
	}
	var list struct {
		Tools json.RawMessage `json:"tools"`
		Next  *string         `json:"nextCursor"`
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || json.Unmarshal(list.Tools, &items) != nil {
		s.c.fail(&x, metrics.InvalidResponse, "the result holds no list of tools")
		return nil, s.c.startError(&x, "tools/list")
	}
	for _, item := range items {
		into.add(readTool(item))
	}
	return list.Next, nil
}

// catalogue gathers tools over pages.
type catalogue struct {
	c     *Client
	tools []wire.Tool
	notes []string
	names map[string]bool
}

// maxListNotes bounds the notes on one catalogue.
const maxListNotes = 50

func (l *catalogue) note(text string) {
	if len(l.notes) < maxListNotes {
		l.notes = append(l.notes, l.c.cfg.Redactor.Line(text, messageShown))
	}
}

func (l *catalogue) add(t wire.Tool, note string) {
	if note != "" {
		l.note(note)
	}
	switch {
	case t.Name == "":
	case l.names[t.Name]:
		l.note("tool " + t.Name + " is listed twice")
	default:
		l.names[t.Name] = true
		l.tools = append(l.tools, t)
	}
}

func cursorParams(cursor string) json.RawMessage {
	if cursor == "" {
		return nil
	}
	return append(appendString([]byte(`{"cursor":`), cursor), '}')
}

// readTool reads one entry. A member of the wrong type is left out, with a note;
// an entry without a name is no tool.
func readTool(raw json.RawMessage) (wire.Tool, string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return wire.Tool{}, "an entry of tools/list is no object"
	}
	var t wire.Tool
	if json.Unmarshal(fields["name"], &t.Name) != nil || t.Name == "" {
		return wire.Tool{}, "a tool without a name"
	}
	note := ""
	if d := fields["description"]; d != nil && json.Unmarshal(d, &t.Description) != nil {
		note = "tool " + t.Name + ": description is no string"
	}
	t.InputSchema, t.OutputSchema = fields["inputSchema"], fields["outputSchema"]
	var hints struct {
		ReadOnly    *bool `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
	}
	if a := fields["annotations"]; a != nil && json.Unmarshal(a, &hints) != nil {
		note = "tool " + t.Name + ": annotations of the wrong type"
	}
	t.ReadOnly, t.Destructive = hints.ReadOnly, hints.Destructive
	return t, note
}

// learn keeps which arguments the tools want repeated as headers.
func (s *Session) learn(tools []wire.Tool) {
	wanted := map[string][]paramHeader{}
	for _, t := range tools {
		if p := paramHeaders(t.InputSchema); p != nil {
			wanted[t.Name] = p
		}
	}
	s.c.tools.Store(&wanted)
}

func (c *Client) paramHeaders(tool string) []paramHeader {
	if known := c.tools.Load(); known != nil && c.era().modern() {
		return (*known)[tool]
	}
	return nil
}
