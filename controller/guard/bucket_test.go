package guard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// stretch is the time between two pauses: what was granted in it, at what rates.
type stretch struct {
	at   []time.Duration
	n    []int64
	rate float64 // the highest
}

// check holds every part of the stretch against rate*T + burst.
func (s *stretch) check(t *testing.T) {
	t.Helper()
	for i := range s.at {
		sum := int64(0)
		for j := i; j < len(s.at); j++ {
			sum += s.n[j]
			if most := s.rate*(s.at[j]-s.at[i]).Seconds() + burst(s.rate); float64(sum) > most+1e-6 {
				t.Fatalf("%d granted from %v to %v, want at most %.2f at %.2f/s", sum, s.at[i], s.at[j], most, s.rate)
			}
		}
	}
}

// TestQuotaBound: whatever signals and questions come, no stretch of time sees
// more than rate*T + burst, and nothing is granted in a pause.
func TestQuotaBound(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	granted := int64(0)
	for range 200 {
		granted += checkBound(t, r)
	}
	if granted < 100_000 {
		t.Errorf("only %d tokens granted: the test proves little", granted)
	}
}

func checkBound(t *testing.T, r *rand.Rand) (granted int64) {
	q, now := NewQuota(20*second), time.Duration(0)
	q.Seen(now, drawSignal(r))
	part := &stretch{}
	agents, haste := 1+r.IntN(20), 1+r.Int64N(int64(100*time.Millisecond))
	for range 1500 {
		now += time.Duration(r.Int64N(haste))
		if r.IntN(400) == 0 {
			now += time.Duration(r.Int64N(int64(5 * second)))
		}
		_, before, _ := q.Limited()
		if r.IntN(300) == 0 {
			q.Seen(now, drawSignal(r))
		}
		if _, until, _ := q.Limited(); until != before {
			part.check(t)
			part = &stretch{}
		}
		want := 1 + r.Int64N(200)
		n, wait := q.Grant(now, fmt.Sprint(r.IntN(agents)), want)
		rate, until, _ := q.Limited()
		checkGrant(t, n, want, wait, max(0, until-now)+20*second)
		if n > 0 && now < until {
			t.Fatalf("%d granted at %v, in a pause until %v", n, now, until)
		}
		part.at, part.n, part.rate = append(part.at, now), append(part.n, n), max(part.rate, rate)
		granted += n
	}
	part.check(t)
	return granted
}

func checkGrant(t *testing.T, n, want int64, wait, longest time.Duration) {
	t.Helper()
	switch {
	case n < 0 || n > want:
		t.Fatalf("%d granted of %d", n, want)
	case n > 0 && wait != 0:
		t.Fatalf("%d granted and a wait of %v", n, wait)
	case n == 0 && (wait <= 0 || wait%time.Millisecond != 0 || wait > longest+time.Millisecond):
		t.Fatalf("nothing granted and a wait of %v, longest %v", wait, longest)
	}
}

func drawSignal(r *rand.Rand) Signal {
	s := Signal{Rate: math.Pow(10, 4*r.Float64()), Age: time.Duration(r.Int64N(int64(second)))}
	if r.IntN(2) == 0 {
		s.RetryAfter = time.Duration(r.Int64N(int64(3 * second)))
	}
	if r.IntN(3) == 0 {
		s.Limit, s.Window = 1+r.Int64N(1000), time.Duration(1+r.Int64N(int64(10*second)))
	}
	return s
}

// TestQuotaBucketStartsEmpty after every pause, whatever was in it.
func TestQuotaBucketStartsEmpty(t *testing.T) {
	q := NewQuota(0)
	for at := time.Duration(0); at < 100*second; at += 20 * second { // the bucket is full by then
		q.Seen(at, Signal{RetryAfter: second, Limit: 100, Window: second, Rate: 90})
		rate, until, _ := q.Limited()
		sum := int64(0)
		for now := until; now <= until+100*time.Millisecond; now += time.Millisecond {
			n, _ := q.Grant(now, "a", 100)
			sum += n
		}
		if most := rate * 0.1; float64(sum) > most {
			t.Errorf("%d granted in the first 100 ms after the pause at %v, want at most %.1f", sum, at, most)
		}
	}
}

// TestQuotaDeterministic: the same calls give the same answers.
func TestQuotaDeterministic(t *testing.T) {
	run := func() (answers []time.Duration) {
		r := rand.New(rand.NewPCG(9, 10))
		q, now := NewQuota(0), time.Duration(0)
		for range 5000 {
			now += time.Duration(r.Int64N(int64(20 * time.Millisecond)))
			if r.IntN(500) == 0 {
				q.Seen(now, drawSignal(r))
			}
			n, wait := q.Grant(now, fmt.Sprint(r.IntN(40)), 1+r.Int64N(20))
			answers = append(answers, time.Duration(n), wait)
		}
		return answers
	}
	first, second := run(), run()
	for i := range first {
		if first[i] != second[i] {
			t.Fatalf("answer %d is %v and then %v", i/2, first[i], second[i])
		}
	}
}

// TestQuotaClockBackwards: a clock that stands still or steps back grants nothing
// that was not there.
func TestQuotaClockBackwards(t *testing.T) {
	q := NewQuota(0)
	q.Seen(0, Signal{RetryAfter: second, Limit: 100, Window: second})
	total := int64(0)
	for i := range 1000 {
		n, _ := q.Grant(2*second-time.Duration(i%2)*500*time.Millisecond, "a", 100)
		total += n
	}
	if total > 24 {
		t.Errorf("%d granted, want one bucket of 23.75", total)
	}
}
