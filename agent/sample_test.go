package agent

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/llm/llmtest"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// sum adds up what was told about a unit.
type sum struct {
	samples      int
	done         int64
	span         time.Duration
	seen         metrics.Tally
	tokens       [2]int64
	largest      int
	doneDecrease bool
}

func (s *sum) add(p wire.Progress) {
	s.doneDecrease = s.doneDecrease || p.Done < s.done
	s.done = p.Done
	if p.Sample == nil {
		return
	}
	s.samples++
	s.span += p.Sample.Span
	part := metrics.Tally{Outcomes: p.Sample.Outcomes, Latency: p.Sample.Latency}
	s.seen.Merge(&part)
	s.tokens[0] += p.Sample.TokensIn
	s.tokens[1] += p.Sample.TokensOut
	if data, err := json.Marshal(p); err == nil {
		s.largest = max(s.largest, len(data))
	}
}

// follow collects the samples of run r1; calls waits until they tell of n calls.
func (w *world) follow() (calls func(n int64) *sum) {
	w.t.Helper()
	s := &sum{}
	samples := make(chan wire.Progress, 10_000)
	w.until(w.bus.OnProgress("r1", func(p wire.Progress) { samples <- p }))
	return func(n int64) *sum {
		for s.seen.Calls() < n {
			s.add(receive(w.t, samples, "further sample"))
		}
		return s
	}
}

func encoded(t *testing.T, d *metrics.Dist) string {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The samples of a unit are its tally, in pieces: nothing is told twice and
// nothing is left out, for every kind of unit that keeps one.
func TestSamplesAddUpToTheResult(t *testing.T) {
	s := llmtest.New(t, func(r llmtest.Request) llmtest.Answer {
		time.Sleep(time.Duration(r.N%5) * time.Millisecond)
		if r.N%7 == 0 {
			return llmtest.Answer{Status: 500}
		}
		return llmtest.Answer{Output: 3}
	})
	recovery := mockUnit("recovery", 300_000)
	recovery.Kind, recovery.Load, recovery.Recovery = wire.RecoveryUnit, nil, &wire.Recovery{MaxRetries: 2}
	open := chatUnit("open", s.URL, 4, 300)
	open.Load.MilliRate = 500_000
	mock := mockUnit("mock", 2_000_000)
	mock.Load.Workers, mock.Load.Level = 8, 8
	for _, u := range []*wire.Unit{mock, recovery, chatUnit("closed", s.URL, 4, 600), open} {
		t.Run(u.ID, func(t *testing.T) {
			w := newWorld(t)
			w.agent(Options{ID: "a1"})
			calls := w.follow()
			w.publish(u)
			r := w.result()
			got := calls(r.Tally.Calls())
			if diff := cmp.Diff(r.Tally.Outcomes, got.seen.Outcomes); diff != "" || r.Failure != nil {
				t.Errorf("failure %v, outcomes (-result +samples):\n%s", r.Failure, diff)
			}
			if want, have := encoded(t, &r.Tally.Latency), encoded(t, &got.seen.Latency); want != have {
				t.Errorf("latency: %d values in the result, %d in the samples, or others", r.Tally.Latency.N(), got.seen.Latency.N())
			}
			if want := [2]int64{r.Tally.TokensIn.Sum(), r.Tally.TokensOut.Sum()}; got.tokens != want {
				t.Errorf("tokens %v, want %v", got.tokens, want)
			}
			if got.span > r.Elapsed+50*time.Millisecond || got.span < r.Elapsed/2 || got.doneDecrease || got.done == 0 {
				t.Errorf("%d samples over %v of %v, %d done", got.samples, got.span, r.Elapsed, got.done)
			}
			t.Logf("%d samples, the largest of %d bytes", got.samples, got.largest)
		})
	}
}

// What cannot be told in its time is told later; the load does not wait for it.
func TestSamplesOutlastALostConnection(t *testing.T) {
	w := newWorld(t)
	a := w.bare()
	lost := connect(t, w.srv)
	lost.Close()
	kept := a.bus
	s := &sampler{agent: a, run: "r1", now: wire.Progress{Unit: "u1", Agent: "a1"}, piece: piece{since: time.Now()}}
	calls := w.follow()
	for n, b := range []struct{ gone bool }{{false}, {true}, {true}, {false}} {
		a.bus = kept
		if b.gone {
			a.bus = lost
		}
		seen := metrics.NewTally()
		for range n + 1 {
			seen.Add(&metrics.Exchange{Delivered: true, Latency: time.Duration(n+1) * time.Millisecond, Usage: true, TokensIn: 10}, 0)
		}
		s.add(int64(n), 0, seen)
		s.once(false)
	}
	if got := calls(10); got.samples != 2 || got.seen.Outcomes[metrics.OK] != 10 || got.seen.Latency.N() != 10 || got.tokens[0] != 100 || got.done != 3 {
		t.Errorf("%v, %d latencies, %d tokens; want all 10 calls in 2 samples", got.seen.Outcomes, got.seen.Latency.N(), got.tokens[0])
	}
}

// BenchmarkSample is what one hand-over of a worker costs the load.
func BenchmarkSample(b *testing.B) {
	s := &sampler{}
	seen := metrics.NewTally()
	for i := range 512 {
		seen.Add(&metrics.Exchange{Delivered: true, Latency: time.Duration(i) * time.Millisecond, Usage: true, TokensIn: 10, TokensOut: 5}, 0)
	}
	for b.Loop() {
		s.add(1, 0, seen)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/call")
}
