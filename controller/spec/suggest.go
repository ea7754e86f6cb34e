package spec

import (
	"fmt"
	"slices"
	"strings"
)

// listed is how many valid words are named beside a near one: a longer list
// buries it.
const listed = 12

// oneOf checks a word against the valid ones and proposes the nearest.
func oneOf(what, word string, valid []string) error {
	if slices.Contains(valid, word) {
		return nil
	}
	hint := ""
	if near := Nearest(word, valid); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
		if len(valid) > listed {
			return fmt.Errorf("unknown %s %q%s", what, word, hint)
		}
	}
	return fmt.Errorf("unknown %s %q%s: want one of %s", what, word, hint, strings.Join(valid, ", "))
}

// Nearest is the valid word closest to word, or empty when none is near: at
// most two edits, or a third of its length.
func Nearest(word string, valid []string) string {
	best, bestDistance := "", max(2, len(word)/3)+1
	for _, v := range valid {
		if d := edits(strings.ToLower(word), v); d < bestDistance {
			best, bestDistance = v, d
		}
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
