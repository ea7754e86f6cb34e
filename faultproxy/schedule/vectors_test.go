package schedule

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files in testdata are frozen. philox.json holds the known answers of
// Random123; the others were written by a second implementation in another
// language. A test of this file that fails means that every stored digest and
// every agent in the field disagrees with this build.

// hex64 is a 64-bit word as 16 hex digits.
type hex64 uint64

func (h *hex64) UnmarshalText(text []byte) error {
	w, err := strconv.ParseUint(string(text), 16, 64)
	*h = hex64(w)
	return err
}

func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func words(block [4]uint64) [4]hex64 {
	return [4]hex64{hex64(block[0]), hex64(block[1]), hex64(block[2]), hex64(block[3])}
}

func TestPhiloxKnownAnswers(t *testing.T) {
	var rows []struct {
		Counter, Block [4]hex64
		Key            [2]hex64
	}
	readVectors(t, "philox.json", &rows)
	if len(rows) != 3 {
		t.Fatalf("%d known answers, want 3", len(rows))
	}
	for _, row := range rows {
		var ctr [4]uint64
		for i, w := range row.Counter {
			ctr[i] = uint64(w)
		}
		got := words(philox(ctr, [2]uint64{uint64(row.Key[0]), uint64(row.Key[1])}))
		if diff := cmp.Diff(row.Block, got); diff != "" {
			t.Errorf("counter %x (-want +got):\n%s", ctr, diff)
		}
	}
}

func TestLayoutVectors(t *testing.T) {
	var file struct {
		Seeds []struct {
			Seed string
			Key  [2]hex64
		}
		Rules []struct {
			ID  string
			Key hex64
		}
		Blocks []struct {
			Seed, Rule    string
			Op            uint64
			Attempt, Lane uint32
			Block         [4]hex64
		}
	}
	readVectors(t, "layout.json", &file)
	if len(file.Seeds) != 5 || len(file.Rules) != 5 || len(file.Blocks) != 20 {
		t.Fatalf("%d seeds, %d rules, %d blocks", len(file.Seeds), len(file.Rules), len(file.Blocks))
	}
	for _, row := range file.Seeds {
		if got := New(row.Seed).key; got != [2]uint64{uint64(row.Key[0]), uint64(row.Key[1])} {
			t.Errorf("seed %q has key %x, want %x", row.Seed, got, row.Key)
		}
	}
	for _, row := range file.Rules {
		if got := KeyOf(row.ID); got != RuleKey(row.Key) {
			t.Errorf("rule %q has key %x, want %x", row.ID, got, row.Key)
		}
	}
	for _, row := range file.Blocks {
		stream, rule := New(row.Seed), KeyOf(row.Rule)
		got := stream.Block(row.Op, row.Attempt, row.Lane, rule)
		if diff := cmp.Diff(row.Block, words(got)); diff != "" {
			t.Errorf("%q %q (%d, %d, %d) (-want +got):\n%s", row.Seed, row.Rule, row.Op, row.Attempt, row.Lane, diff)
		}
		if draw := stream.Draw(rule, row.Op, row.Attempt, row.Lane); draw != got[0] {
			t.Errorf("draw %x is not the first word of %x", draw, got)
		}
	}
}

func TestDigestVectors(t *testing.T) {
	var rows []struct {
		Seed     string
		Rules    []Rule
		From, To uint64
		Attempts uint32
		Digest   string
		Injected map[Kind]int64
	}
	readVectors(t, "digests.json", &rows)
	if len(rows) != 4 {
		t.Fatalf("%d digests, want 4", len(rows))
	}
	for _, row := range rows {
		s, err := Build(row.Seed, row.Rules)
		if err != nil {
			t.Fatal(err)
		}
		injected := map[Kind]int64{}
		for op := row.From; op < row.To; op++ {
			for attempt := range row.Attempts {
				if kind := s.At(op, attempt).Kind; kind != None {
					injected[kind]++
				}
			}
		}
		if diff := cmp.Diff(row.Injected, injected); diff != "" {
			t.Errorf("seed %q (-want +got):\n%s", row.Seed, diff)
		}
		if got := s.Digest(row.From, row.To, row.Attempts); got != row.Digest {
			t.Errorf("seed %q has digest %s, want %s", row.Seed, got, row.Digest)
		}
	}
	if rows[0].Injected[Timeout] != 29_987 { // counted before this code was written
		t.Errorf("the first vector counts %d hits", rows[0].Injected[Timeout])
	}
}

// TestRetryDrawsAnew pins the correlation between the hits of attempts 0 and 1
// in the first digest vector; chance alone gives ±0.0032.
func TestRetryDrawsAnew(t *testing.T) {
	s := build(t, "42", Rule{ID: "r1", Kinds: []Kind{Timeout}, RatePPB: 300_000_000})
	const ops = 100_000
	var first, second, both float64
	for op := range uint64(ops) {
		a, b := s.At(op, 0).Kind != None, s.At(op, 1).Kind != None
		if a {
			first++
		}
		if b {
			second++
		}
		if a && b {
			both++
		}
	}
	p, q := first/ops, second/ops
	r := (both/ops - p*q) / math.Sqrt(p*(1-p)*q*(1-q))
	if got := fmt.Sprintf("%.4f", r); got != "-0.0075" {
		t.Errorf("correlation %s, want -0.0075", got)
	}
}

// joinDigest is what every agent of layout version 1 answers.
const joinDigest = "6cc63aadc8d5fd62d1d83f55743945f53d501a15c8897d65671d088509719be6"

func TestJoinDigestIsFrozen(t *testing.T) {
	for range 2 {
		if got := Digest(); got != joinDigest {
			t.Errorf("Digest() = %s, want %s", got, joinDigest)
		}
	}
}
