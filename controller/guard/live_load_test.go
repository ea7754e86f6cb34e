package guard

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"ordeal/metrics"
)

// fleetSamples are what 1,000 agents report in one round.
func fleetSamples(calls int) []Sample {
	r := rand.New(rand.NewPCG(3, 4))
	all := make([]Sample, 1000)
	for i := range all {
		all[i] = Sample{Outcomes: metrics.Counts{metrics.OK: int64(calls), metrics.Timeout: 1, metrics.ServerError: 1}}
		for range calls {
			all[i].Latency.Record(int64(20_000 * (1 + r.ExpFloat64())))
		}
	}
	return all
}

var usual = []string{"error_rate>0.5/10s", "rate_limited_rate>0.2/5s", "p95>5s/30s", "p99>20s/10m"}

// TestLiveMemory: an hour of a fleet of 1,000 agents at 5 samples/s takes as much
// memory as a minute of it. The samples repeat, so the memory is that of Live.
func TestLiveMemory(t *testing.T) {
	samples := fleetSamples(20)
	l := NewLive(conditions(t, usual...), 0)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, at := heap(), time.Duration(0)
	for range 13 { // minutes: beyond the longest window
		for range 60 * 5 {
			for i := range 50 { // one sample stands for 20: what counts is that slots are full
				l.Add(at, samples[i*20])
			}
			at += 200 * time.Millisecond
		}
		if got := int64(heap()) - int64(before); got > 8<<20 {
			t.Fatalf("%d MB after %v", got>>20, at)
		}
	}
	if _, tripped := l.Check(at); tripped {
		t.Error("tripped")
	}
	runtime.KeepAlive(samples)
}

// BenchmarkLiveAdd is one sample of 20 calls; 1,000 agents at 5 samples/s make
// 5,000 of them a second.
func BenchmarkLiveAdd(b *testing.B) {
	for _, calls := range []int{20, 1000} {
		b.Run(fmt.Sprint(calls), func(b *testing.B) {
			samples := fleetSamples(calls)
			l := NewLive(conditions(b, usual...), 0)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				l.Add(time.Duration(i)*(time.Second/5000), samples[i%len(samples)])
				i++
			}
		})
	}
}

// BenchmarkLiveCheck evaluates four conditions on windows full of calls.
func BenchmarkLiveCheck(b *testing.B) {
	samples := fleetSamples(20)
	l := NewLive(conditions(b, usual...), 0)
	const end = 11 * time.Minute
	for at := time.Duration(0); at < end; at += 4 * time.Millisecond {
		l.Add(at, samples[int(at/time.Millisecond)%1000])
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, tripped := l.Check(end); tripped {
			b.Fatal("tripped")
		}
	}
}
