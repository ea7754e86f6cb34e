package probe

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Bounds of a payload kept for people; the case it came from can be derived
// again in full.
const (
	briefBytes = 4096
	briefText  = 100 // characters of one text
)

// brief is a payload fit for a report: as it is when it is small, else with
// long texts and long lists cut, saying by how much.
func brief(payload json.RawMessage) json.RawMessage {
	if len(payload) <= briefBytes {
		return payload
	}
	var v any
	if json.Unmarshal(payload, &v) == nil {
		if short, err := json.Marshal(shorten(v)); err == nil && len(short) <= briefBytes {
			return short
		}
	}
	note, _ := json.Marshal(fmt.Sprintf("(%d bytes)", len(payload))) // a string always encodes
	return note
}

func shorten(v any) any {
	const kept = 5
	switch v := v.(type) {
	case string:
		if n := utf8.RuneCountInString(v); n > briefText {
			return fmt.Sprintf("%s...(%d characters)", string([]rune(v)[:briefText/2]), n)
		}
	case []any:
		n := len(v)
		for i := range v[:min(n, kept)] {
			v[i] = shorten(v[i])
		}
		if n > kept {
			return append(v[:kept:kept], fmt.Sprintf("...(%d elements)", n))
		}
	case map[string]any:
		for name := range v {
			v[name] = shorten(v[name])
		}
	}
	return v
}
