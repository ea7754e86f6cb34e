package schedule

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func build(t testing.TB, seed string, rules ...Rule) *Schedule {
	t.Helper()
	s, err := Build(seed, rules)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// five is the rule of the examples: the default kinds at a rate of 0.3.
func five(id string) Rule { return Rule{ID: id, Kinds: DefaultKinds(), RatePPB: 300_000_000} }

// decisions lists attempt 0 of the first operations.
func decisions(s *Schedule, ops int) []Decision {
	out := make([]Decision, ops)
	for op := range out {
		out[op] = s.At(uint64(op), 0)
	}
	return out
}

func TestBuildNamesEveryMistake(t *testing.T) {
	_, err := Build("42", []Rule{
		{ID: "", Kinds: []Kind{Timeout}},
		{ID: "a"},
		{ID: "b", Kinds: []Kind{Timeout, None, Timeout, kindCount}, RatePPB: One + 1},
		{ID: "c", Kinds: []Kind{Timeout}, From: 20, To: 20},
		{ID: "d", Kinds: []Kind{Timeout}, Burst: &Burst{Enter: One, Leave: One}},
		{ID: "e", Kinds: []Kind{Timeout}, Exactly: 3},
		{ID: "f", Kinds: []Kind{Timeout}, Exactly: 11, To: 10, Burst: &Burst{Enter: 1_000_000, Leave: 1_000_000}},
		{ID: "a", Kinds: []Kind{Timeout}},
	})
	want := []string{
		`fault rule "": has no id`,
		`fault rule "a": lists no kind; valid: [timeout rate_limit server_error malformed connection_refused]`,
		`fault rule "b": cannot inject none`,
		`fault rule "b": lists timeout twice; kinds share the rate equally, so use a second rule to give one more`,
		`fault rule "b": cannot inject kind(7)`,
		`fault rule "b": rate of 1000000001 parts per 1000000000 is above 1`,
		`fault rule "c": window 20..20 holds no operation`,
		`fault rule "d": burst: enter 1 is above 1 - leave 1, epochs would alternate; lower one of them`,
		`fault rule "e": exactly 3 faults need a window with an end`,
		`fault rule "f": exactly 11 faults do not fit into 10 operations`,
		`fault rule "f": exactly 11 faults cannot also depend on bursts`,
		`fault rule "a": the id is used twice; both would fault the same operations`,
	}
	if err == nil {
		t.Fatal("the rules were accepted")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
}

func TestNoRulesNoFaults(t *testing.T) {
	if got := build(t, "42").Replay(0, 1_000, 2); got.Disrupted != 0 || got.Attempts != 1_000 {
		t.Errorf("%+v", got)
	}
	if got := build(t, "42", Rule{ID: "off", Kinds: DefaultKinds()}).Replay(0, 1_000, 2); got.Disrupted != 0 {
		t.Errorf("rate 0: %+v", got)
	}
}

// TestOrderOfAskingDoesNotMatter asks once in order, once shuffled and once
// from several goroutines that share the work.
func TestOrderOfAskingDoesNotMatter(t *testing.T) {
	const ops = 5_000
	s := build(t, "42", probeRules(t)...)
	want := decisions(s, ops)

	shuffled := make([]Decision, ops)
	for _, op := range rand.New(rand.NewPCG(1, 2)).Perm(ops) {
		shuffled[op] = s.At(uint64(op), 0)
	}
	if diff := cmp.Diff(want, shuffled); diff != "" {
		t.Errorf("shuffled (-want +got):\n%s", diff)
	}
	for _, workers := range []int{1, 2, 7, 32} {
		shared := make([]Decision, ops)
		var wg sync.WaitGroup
		for w := range workers {
			own := build(t, "42", probeRules(t)...) // as on another machine
			wg.Go(func() {
				for op := w; op < ops; op += workers {
					shared[op] = own.At(uint64(op), 0)
				}
			})
		}
		wg.Wait()
		if diff := cmp.Diff(want, shared); diff != "" {
			t.Errorf("%d workers (-want +got):\n%s", workers, diff)
		}
	}
}

func probeRules(t *testing.T) []Rule {
	t.Helper()
	var rules []Rule
	for _, r := range probeSchedule().rules {
		rules = append(rules, r.Rule)
	}
	if len(rules) < 4 {
		t.Fatalf("the probe has only %d rules", len(rules))
	}
	return rules
}

// TestAnotherRuleShiftsNothing adds rules around one and looks at the places
// where they stay silent.
func TestAnotherRuleShiftsNothing(t *testing.T) {
	alone := decisions(build(t, "42", five("mine")), 20_000)
	before := Rule{ID: "before", Kinds: []Kind{Timeout}, RatePPB: 100_000_000}
	after := Rule{ID: "after", Kinds: []Kind{Malformed}, RatePPB: 100_000_000}
	together := decisions(build(t, "42", before, five("mine"), after), 20_000)
	fired := map[string]int{}
	for op, got := range together {
		fired[got.Rule]++
		switch got.Rule {
		case "before": // takes precedence, whatever the others drew
		case "after":
			if alone[op].Kind != None {
				t.Fatalf("operation %d: the later rule replaced %v", op, alone[op])
			}
		default:
			if got != alone[op] {
				t.Fatalf("operation %d: %v became %v", op, alone[op], got)
			}
		}
	}
	for _, id := range []string{"before", "mine", "after", ""} {
		if fired[id] < 1_000 {
			t.Errorf("rule %q fired %d times, too few for the test to mean anything", id, fired[id])
		}
	}
}

func TestListingOrderAndAliasesDoNotMatter(t *testing.T) {
	kinds := []Kind{ConnectionRefused, Timeout, Malformed}
	burst := &Burst{Enter: 100_000_000, Leave: 100_000_000}
	s := build(t, "42", Rule{ID: "r", Kinds: kinds, RatePPB: One, Burst: burst})
	sorted := build(t, "42", Rule{ID: "r", Kinds: []Kind{Timeout, Malformed, ConnectionRefused}, RatePPB: One,
		Burst: &Burst{Enter: 100_000_000, Leave: 100_000_000}})
	if kinds[0] != ConnectionRefused {
		t.Error("Build reordered the caller's kinds")
	}
	kinds[0], burst.Enter = ResponseLost, 0
	if diff := cmp.Diff(decisions(sorted, 2_000), decisions(s, 2_000)); diff != "" {
		t.Errorf("(-sorted +unsorted and then changed):\n%s", diff)
	}
}

func TestWindow(t *testing.T) {
	s := build(t, "42", Rule{ID: "outage", Kinds: []Kind{ConnectionRefused}, RatePPB: One, From: 2_000, To: 2_600})
	open := build(t, "42", Rule{ID: "outage", Kinds: []Kind{ConnectionRefused}, RatePPB: One, From: 2_000})
	for op := range uint64(4_000) {
		for attempt := range uint32(3) {
			if got, want := s.At(op, attempt).Kind != None, op >= 2_000 && op < 2_600; got != want {
				t.Fatalf("operation %d, attempt %d: faulted %v", op, attempt, got)
			}
		}
		if got, want := open.At(op, 0).Kind != None, op >= 2_000; got != want {
			t.Fatalf("open window, operation %d: faulted %v", op, got)
		}
	}
	if open.At(1<<64-1, 0).Kind != ConnectionRefused {
		t.Error("the open window ends before the last operation")
	}
}

// TestPassesAreIndependent compares two passes over the same operations: under
// one id they fault the same ones, under ForPass as many as chance has it.
func TestPassesAreIndependent(t *testing.T) {
	rules := []Rule{five("faults")}
	degradation := decisions(build(t, "42", ForPass("degradation", rules)...), 50_000)
	recovery := decisions(build(t, "42", ForPass("recovery", rules)...), 50_000)
	if rules[0].ID != "faults" {
		t.Error("ForPass changed the caller's rules")
	}
	both := 0
	for op := range degradation {
		if degradation[op].Kind != None && recovery[op].Kind != None {
			both++
		}
	}
	if both < 4_300 || both > 4_700 { // 4,500 expected, standard deviation 64
		t.Errorf("%d of 50,000 operations are faulted in both passes, want about 4,500", both)
	}
	for _, d := range recovery {
		if d.Kind != None && d.Rule != "recovery/faults" {
			t.Fatalf("a fault of the recovery pass names rule %q", d.Rule)
		}
	}
}

func TestOtherSeedOtherFaults(t *testing.T) {
	one, other := build(t, "42", five("r")), build(t, "43", five("r"))
	if one.Digest(0, 200, 1) == other.Digest(0, 200, 1) {
		t.Error("two seeds give one schedule")
	}
	if one.Digest(0, 200, 1) != build(t, "42", five("r")).Digest(0, 200, 1) {
		t.Error("one seed gives two schedules")
	}
	if one.Digest(0, 200, 1) == one.Digest(1, 201, 1) || one.Digest(0, 200, 1) == one.Digest(0, 200, 2) {
		t.Error("the digest does not cover its range")
	}
}

func BenchmarkAt(b *testing.B) {
	s := build(b, "42", five("r"))
	b.ReportAllocs()
	op, hits := uint64(0), 0
	for b.Loop() {
		op++
		if s.At(op, 0).Kind != None {
			hits++
		}
	}
	if b.N > 1_000 && hits == 0 {
		b.Error("no fault in a benchmark at rate 0.3")
	}
}
