package pace

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func profile(t testing.TB, ramps ...Ramp) Profile {
	t.Helper()
	p, err := NewProfile(ramps)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// anyProfile draws steps, ramps up and down, and stretches without a rate.
func anyProfile(t testing.TB, rng *rand.Rand, most int64, longest time.Duration) Profile {
	ramps := make([]Ramp, 1+rng.IntN(6))
	level := func() int64 {
		if rng.IntN(3) == 0 {
			return 0
		}
		return rng.Int64N(most + 1)
	}
	for i := range ramps {
		ramps[i] = Ramp{For: time.Duration(rng.Int64N(int64(longest/time.Microsecond))) * time.Microsecond, From: level(), To: level()}
		if rng.IntN(3) == 0 {
			ramps[i].To = ramps[i].From
		}
	}
	return profile(t, ramps...)
}

func TestProfileDue(t *testing.T) {
	up := []Ramp{{For: 10 * time.Second, From: 0, To: 10_000}}
	spike := []Ramp{{For: time.Second, From: 1000, To: 1000}, {For: 10 * time.Second}, {For: time.Second, From: 2000, To: 2000}}
	rows := []struct {
		name  string
		ramps []Ramp
		i     uint64
		due   time.Duration
		ok    bool
	}{
		{"Nothing", nil, 0, 0, false},
		{"NoRate", []Ramp{{For: time.Hour}}, 0, 0, false},
		{"EvenFirst", []Ramp{{For: time.Second, From: 3000, To: 3000}}, 0, 0, true},
		{"EvenThird", []Ramp{{For: time.Second, From: 3000, To: 3000}}, 1, 333_333 * time.Microsecond, true},
		{"EvenEnd", []Ramp{{For: time.Second, From: 3000, To: 3000}}, 3, 0, false},
		{"UpFirst", up, 0, 0, true},
		{"UpHalf", up, 2, 2 * time.Second, true},               // t²/2 = 2
		{"UpLast", up, 49, 9_899_494 * time.Microsecond, true}, // sqrt 98
		{"UpEnd", up, 50, 0, false},
		{"DownFirst", []Ramp{{For: 2 * time.Second, From: 2000, To: 0}}, 1, 585_786 * time.Microsecond, true}, // 2-sqrt 2
		{"StepOver", []Ramp{{For: 0, From: 5, To: 9}, {For: time.Second, From: 1000, To: 1000}}, 0, 0, true},
		{"AfterThePause", spike, 1, 11 * time.Second, true},
		{"AfterThePauseSecond", spike, 2, 11_500 * time.Millisecond, true},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if due, ok := profile(t, r.ramps...).Due(r.i); due != r.due || ok != r.ok {
				t.Errorf("Due(%d) = %v, %v; want %v, %v", r.i, due, ok, r.due, r.ok)
			}
		})
	}
}

// integral is the doubled integral until t, times length, by big rationals.
func integral(p Profile, us uint64) *big.Rat {
	sum := new(big.Rat)
	frac := func(a, b uint64) *big.Rat {
		return new(big.Rat).SetFrac(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
	}
	for _, s := range p.stretches {
		if us <= s.start {
			break
		}
		in := min(us-s.start, s.length)
		share := frac(in, s.length)
		rise := new(big.Rat).Sub(frac(s.to, 1), frac(s.from, 1))
		mean := new(big.Rat).Add(frac(s.from, 1), rise.Mul(rise, share.Quo(share, frac(2, 1))))
		sum.Add(sum, mean.Mul(mean, frac(in, 1)))
	}
	return sum.Quo(sum, frac(billion, 1))
}

// TestProfileExact holds arrivals of any number, also the millionth and beyond,
// against big rationals: the integral has not exceeded i when arrival i is due, and
// has a microsecond later.
func TestProfileExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 7))
	checked := 0
	for range 4_000 {
		p := anyProfile(t, rng, 1<<(1+rng.UintN(39)), time.Duration(1)<<(11+rng.UintN(37)))
		total := p.Arrivals(p.Length())
		if total == 0 {
			continue
		}
		for _, i := range []uint64{0, total - 1, rng.Uint64N(total), min(1_000_000, total-1)} {
			due, ok := p.Due(i)
			us := uint64(due / time.Microsecond)
			arrival := new(big.Rat).SetInt(new(big.Int).SetUint64(i))
			if !ok || integral(p, us).Cmp(arrival) > 0 || integral(p, us+1).Cmp(arrival) <= 0 {
				t.Fatalf("%+v: arrival %d of %d due at %v, %v", p, i, total, due, ok)
			}
			checked++
		}
		if due, ok := p.Due(total); ok {
			t.Fatalf("%+v: arrival %d due at %v, want %d in all", p, total, due, total)
		}
	}
	if checked < 8_000 {
		t.Errorf("only %d arrivals checked", checked)
	}
}

// TestEvenIsConstant: a profile of one level and a constant rate are one schedule.
func TestEvenIsConstant(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 8))
	for range 20_000 {
		rate, length := 1+rng.Int64N(100_000_000), time.Duration(1+rng.Int64N(1e9))*time.Microsecond
		p, err := Even(rate, length)
		if err != nil {
			t.Fatal(err)
		}
		i := rng.Uint64N(p.Arrivals(length) + 10)
		due, ok := p.Due(i)
		if want, in := (Constant{MilliRate: rate, Length: length}).Due(i); due != want || ok != in {
			t.Fatalf("rate %d for %v: arrival %d at %v, %v; constant %v, %v", rate, length, i, due, ok, want, in)
		}
	}
}

// TestArrivals: those of a stretch are what its integral says, within one, they
// ascend, and Arrivals counts exactly those that Due names.
func TestArrivals(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	for range 200 {
		p := anyProfile(t, rng, 300_000, 20*time.Second)
		var dues []time.Duration
		for i := uint64(0); ; i++ {
			due, ok := p.Due(i)
			if !ok {
				break
			}
			if n := len(dues); n > 0 && due < dues[n-1] {
				t.Fatalf("%+v: arrival %d at %v after %v", p, i, due, dues[n-1])
			}
			dues = append(dues, due)
		}
		whole, _ := integral(p, uint64(p.Length()/time.Microsecond)).Float64()
		if off := float64(len(dues)) - whole; off < 0 || off >= 1 {
			t.Fatalf("%+v: %d arrivals, the integral is %f", p, len(dues), whole)
		}
		if mean := p.Mean(0, p.Length()) * p.Length().Seconds() / 1000; mean < whole-0.001 || mean > whole+0.001 {
			t.Fatalf("%+v: mean says %f arrivals, the integral is %f", p, mean, whole)
		}
		for at, n := time.Duration(0), 0; at <= p.Length(); at += p.Length()/17 + 1 {
			for n < len(dues) && dues[n] < at {
				n++
			}
			if got := p.Arrivals(at); got != uint64(n) {
				t.Fatalf("%+v: %d arrivals before %v, want %d", p, got, at, n)
			}
		}
	}
}

// TestCallers: a caller is at work exactly while its shifts say so.
func TestCallers(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 10))
	for range 500 {
		p := anyProfile(t, rng, 12, 5*time.Microsecond+time.Duration(rng.Int64N(int64(10*time.Second))))
		shifts := make([][]Span, p.Peak()+2)
		for c := range shifts {
			shifts[c] = p.Shifts(int64(c))
		}
		for range 200 {
			at := time.Duration(rng.Int64N(int64(p.Length()) + 10))
			if rng.IntN(4) == 0 && len(shifts[0]) > 0 { // where somebody begins or ends
				s := shifts[0][rng.IntN(len(shifts[0]))]
				at = s.From + time.Duration(rng.IntN(3)-1)
			}
			var atWork int64
			for c := range shifts {
				for _, s := range shifts[c] {
					if s.From <= at && at < s.To {
						atWork++
					}
				}
			}
			if got := p.Callers(at); got != atWork {
				t.Fatalf("%+v: %d callers at %d, %d have a shift", p, got, at, atWork)
			}
		}
	}
}

func TestShifts(t *testing.T) {
	p := profile(t, Ramp{10 * time.Second, 0, 10}, Ramp{5 * time.Second, 10, 10}, Ramp{time.Second, 4, 4}, Ramp{10 * time.Second, 10, 0})
	rows := map[int64][]Span{
		0:  {{1, 26 * time.Second}},
		3:  {{3*time.Second + 1, 23 * time.Second}},
		9:  {{9*time.Second + 1, 15 * time.Second}, {16 * time.Second, 17 * time.Second}},
		10: nil,
	}
	for c, want := range rows {
		if diff := cmp.Diff(want, p.Shifts(c)); diff != "" {
			t.Errorf("caller %d: %s", c, diff)
		}
	}
}

// TestPartsAreThePlan: agents that make every k-th arrival make all of one agent's,
// each once, whatever the shape.
func TestPartsAreThePlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 11))
	for range 20 {
		p := anyProfile(t, rng, 200_000, 10*time.Second)
		shapes := map[string]func() Shape{
			"profile": func() Shape { return p },
			"poisson": func() Shape { return NewPoisson("s", p) },
		}
		for name, shape := range shapes {
			want := plan(shape(), 1, 0)
			for _, parts := range []uint64{2, 3, 7, 16} {
				got := map[uint64]time.Duration{}
				for part := range parts {
					for i, due := range plan(shape(), parts, part) {
						if _, twice := got[i]; twice {
							t.Fatalf("%s in %d parts: arrival %d twice", name, parts, i)
						}
						got[i] = due
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s in %d parts: %s", name, parts, diff)
				}
			}
		}
	}
}

func plan(s Shape, parts, part uint64) map[uint64]time.Duration {
	dues := map[uint64]time.Duration{}
	for i := part; ; i += parts {
		due, ok := s.Due(i)
		if !ok {
			return dues
		}
		dues[i] = due
	}
}

func TestProfileProblems(t *testing.T) {
	rows := map[string][]Ramp{
		"ramp 2":                       {{For: time.Second}, {For: -time.Second}},
		"whole number of microseconds": {{For: 1500}},
		"levels from 0 to":             {{For: time.Second, From: -1}},
		"goes from 0 to 1000000000001": {{For: time.Second, To: MaxLevel + 1}},
		"shorten it":                   {{For: MaxLength}, {For: time.Second}},
	}
	for want, ramps := range rows {
		if _, err := NewProfile(ramps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want one that says %q", ramps, err, want)
		}
	}
	if p, err := Even(1000, 0); err != nil || p.Length() != MaxLength || p.Arrivals(MaxLength) != 2_160_000 {
		t.Errorf("even: %v, %v, %d arrivals", err, p.Length(), p.Arrivals(MaxLength))
	}
	if got := (Profile{}).Mean(time.Second, 0); got != 0 {
		t.Errorf("mean of nothing %f", got)
	}
}

func BenchmarkProfileDue(b *testing.B) {
	p := profile(b, Ramp{time.Hour, 0, 3_333_333}, Ramp{time.Hour, 3_333_333, 0})
	total := p.Arrivals(p.Length())
	for i := range b.N {
		p.Due(uint64(i) * 7919 % total)
	}
}
