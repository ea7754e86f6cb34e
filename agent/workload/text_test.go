package workload

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func decoded[T any](t testing.TB, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func TestCorpus(t *testing.T) {
	rows := [][]cell{{newCell([]byte(`"alpha beta \"gamma\""`))}, {newCell([]byte(`"delta"`))}, {newCell([]byte(`17`))}}
	c := newCorpus(rows, 0)
	for _, tt := range []struct {
		n    int64
		row  int
		want string
	}{
		{1, 0, `alpha`},
		{2, 0, `alpha beta`}, // 5 bytes are not yet 2 tokens
		{3, 0, `alpha beta \"gamma\"`},
		{5, 0, `alpha beta \"gamma\"\ndelta`},
		{1, 1, `delta`},
		{3, 1, `delta\n17\nalpha`},
		{1, 2, `17\nalpha`},
		{9, 2, `17\nalpha beta \"gamma\"\ndelta\n17\nalpha`},
	} {
		if diff := cmp.Diff(tt.want, string(c.append(nil, tt.n, tt.row))); diff != "" {
			t.Errorf("%d tokens from row %d: %s", tt.n, tt.row, diff)
		}
	}
}

// TestCorpusCutsBetweenCharacters: a text without blanks stays text.
func TestCorpusCutsBetweenCharacters(t *testing.T) {
	c := newCorpus([][]cell{{newCell(quoted(strings.Repeat("日本語", 50)))}}, 0)
	for n := range int64(150) {
		got := decoded[string](t, json.RawMessage(`"`+string(c.append(nil, n+1, 0))+`"`))
		if strings.ContainsRune(got, '\uFFFD') || len(got) > int(n+1)*bytesPerToken+longestWord+2 {
			t.Fatalf("%d tokens: %d bytes, %q", n+1, len(got), got)
		}
	}
}

func TestVocabulary(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range vocabulary {
		seen[w] = true
	}
	if len(vocabulary) != 256 || len(seen) != 256 {
		t.Errorf("%d words, %d different: want 256, one for each value of a byte", len(vocabulary), len(seen))
	}
}
