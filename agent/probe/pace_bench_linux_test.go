package probe

import (
	"fmt"
	"runtime/debug"
	rtmetrics "runtime/metrics"
	"sync"
	"testing"
	"time"

	"ordeal/agent/wire"
)

// BenchmarkPace is an open loop against a server on loopback that notes when calls
// come in: b.N arrivals at a rate. Beside what the server saw it reports how late
// the pacer woke (lag) and a slot began its call (late), and what a call costs in
// CPU, server included: it is in this process.
//
//	go test ./agent/probe -run '^$' -bench Pace$ -benchtime 10000x
func BenchmarkPace(b *testing.B) {
	for _, rate := range []int64{1000, 5000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			e := newEcho(b)
			u := loadUnit(uint64(b.N), wire.Load{Workers: 1, Level: 8, MilliRate: rate * 1000})
			cpu := CPUTime()
			res := Run(b.Context(), Env{Target: e}, u, nil)
			cpu = CPUTime() - cpu
			if res.Failure != nil {
				b.Fatal(res.Failure.Message)
			}
			n, cv, off := e.arrivals(float64(rate))
			lag, late := &res.Generator.Lag, &res.Tally.Late
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(100*float64(int64(n)-int64(b.N))/float64(b.N), "total-off-%")
			b.ReportMetric(100*cv, "cv-%")
			b.ReportMetric(float64(off.Microseconds()), "kth-p99-us")
			b.ReportMetric(float64(lag.Quantile(500)), "lag-p50-us")
			b.ReportMetric(float64(lag.Quantile(990)), "lag-p99-us")
			b.ReportMetric(float64(late.Quantile(500)), "late-p50-us")
			b.ReportMetric(float64(late.Quantile(990)), "late-p99-us")
			b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-us/call")
		})
	}
}

// BenchmarkStallMemory is 10 s at 1,000/s, calm and with a stall of a second, with
// the most memory that the generator, a process of its own beside the server, held
// meanwhile.
func BenchmarkStallMemory(b *testing.B) {
	for _, name := range []string{"calm", "stall"} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				l := wire.Load{Workers: 1, Level: 8, MilliRate: 1_000_000, Duration: 10 * time.Second, MaxInFlight: 2000, Period: time.Second}
				r := generator(b, -1, order{Addr: child(b, -1, "echo "+name)(), Load: l})
				if r.Failure != nil || r.Successes != 10_000 {
					b.Fatalf("%+v", r)
				}
				b.ReportMetric(float64(r.Peak)/(1<<20), "peak-MiB")
			}
		})
	}
}

// watchMemory is the most memory that the runtime held while f ran.
func watchMemory(f func()) (most uint64) {
	debug.FreeOSMemory()
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		s := [2]rtmetrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			rtmetrics.Read(s[:])
			most = max(most, s[0].Value.Uint64()-s[1].Value.Uint64())
			select {
			case <-quit:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	f()
	close(quit)
	wg.Wait()
	return most
}
