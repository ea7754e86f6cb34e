package schedule

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFloor(t *testing.T) {
	for _, row := range []struct {
		rate    PPB
		retries uint32
		want    string
	}{
		{200_000_000, 2, "0.9600"}, {300_000_000, 2, "0.9100"}, {250_000_000, 2, "0.9375"},
		{300_000_000, 0, "0.0000"}, {0, 0, "0.0000"}, {0, 2, "1.0000"}, {One, 5, "0.0000"},
	} {
		if got := fmt.Sprintf("%.4f", Floor(row.rate, row.retries)); got != row.want {
			t.Errorf("Floor(%v, %d) = %s, want %s", row.rate, row.retries, got, row.want)
		}
	}
}

func TestCallsFor(t *testing.T) {
	for disrupted, want := range map[uint64][3]uint64{
		35: {117, 175, 700}, 73: {244, 365, 1_460}, 189: {630, 945, 3_780}, 381: {1_270, 1_905, 7_620}, 3_838: {12_794, 19_190, 76_760},
	} {
		for i, rate := range []PPB{300_000_000, 200_000_000, 50_000_000} {
			if got := CallsFor(disrupted, rate); got != want[i] {
				t.Errorf("CallsFor(%d, %v) = %d, want %d", disrupted, rate, got, want[i])
			}
		}
	}
	if got := CallsFor(35, 0); got != 0 {
		t.Errorf("rate 0 needs %d calls", got)
	}
}

// TestReplayCounts recounts a schedule by hand, attempt by attempt.
func TestReplayCounts(t *testing.T) {
	s := build(t, "42", five("recovery/faults"))
	want := Ideal{Operations: 2_000, ByKind: map[Kind]int64{}}
	for op := range uint64(2_000) {
		first, second, third := s.At(op, 0).Kind, s.At(op, 1).Kind, s.At(op, 2).Kind
		switch {
		case first == None:
			want.Attempts++
			continue
		case second == None:
			want.Attempts, want.Recovered = want.Attempts+2, want.Recovered+1
		case third == None:
			want.Attempts, want.Recovered = want.Attempts+3, want.Recovered+1
		default:
			want.Attempts += 3
		}
		want.Disrupted++
		want.ByKind[first]++
		if second != None {
			want.ByKind[second]++
			if third != None {
				want.ByKind[third]++
			}
		}
	}
	got := s.Replay(0, 2_000, 2)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("replay (-want +got):\n%s", diff)
	}
	var faults int64
	for _, n := range got.ByKind {
		faults += n
	}
	clean := got.Operations - (got.Disrupted - got.Recovered)
	if got.Attempts != faults+clean {
		t.Errorf("%d attempts, but %d faults and %d clean ends", got.Attempts, faults, clean)
	}
}

func TestReplayOfPartsIsTheWhole(t *testing.T) {
	s := probeSchedule()
	want := s.Replay(0, 3_000, 2)
	for _, parts := range []uint64{1, 2, 7, 500} {
		sum := Ideal{}
		for i := range parts {
			sum = sum.Add(s.Replay(i*3_000/parts, (i+1)*3_000/parts, 2))
		}
		if diff := cmp.Diff(want, sum); diff != "" {
			t.Errorf("%d parts (-want +got):\n%s", parts, diff)
		}
	}
}

// TestReplayMeetsTheFloor checks both sides of the same claim: over a long
// schedule the ideal caller recovers what Floor says, and on short ones it is
// above and below, which is why the floor must not be the judge.
func TestReplayMeetsTheFloor(t *testing.T) {
	s := build(t, "42", five("recovery/faults"))
	long := s.Replay(0, 200_000, 2)
	rate, ok := long.RecoveryRate()
	if want := Floor(300_000_000, 2); !ok || math.Abs(rate-want) > 0.004 {
		t.Errorf("recovery %v (%v), want %v", rate, ok, want)
	}
	if perOp := float64(long.Attempts) / float64(long.Operations); math.Abs(perOp-1.39) > 0.01 {
		t.Errorf("%.3f attempts per operation, want 1.39", perOp)
	}
	below := 0
	for i := range uint64(200) {
		if rate, ok := s.Replay(i*40, (i+1)*40, 2).RecoveryRate(); ok && rate < Floor(300_000_000, 2) {
			below++
		}
	}
	if below < 40 || below > 160 {
		t.Errorf("%d of 200 short schedules lie below the mean", below)
	}
	if rate, ok := s.Replay(7, 7, 2).RecoveryRate(); ok || rate != 0 {
		t.Errorf("no operation recovers %v, %v", rate, ok)
	}
}

func TestIdealAsJSON(t *testing.T) {
	s := build(t, "42", Rule{ID: "r", Kinds: []Kind{Timeout, ServerError}, RatePPB: One, From: 0, To: 3})
	text, err := json.Marshal(s.Replay(0, 4, 1))
	if err != nil {
		t.Fatal(err)
	}
	var back Ideal
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Replay(0, 4, 1), back); diff != "" {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
}
