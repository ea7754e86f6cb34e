package probe

import (
	"cmp"
	"fmt"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Limits above which the generator, and not the target, may be what a level
// measured.
const (
	busyMilli  = 850                   // of each core the process may use
	lateFloor  = time.Millisecond      // pacer, p99; open-loop latency counts lateness in
	lateFew    = 2 * time.Millisecond  // the same, where fewer than manyTicks tell
	driftFloor = 10 * time.Millisecond // closed loop, p99: timers alone are 1 ms late
	latePart   = 10                    // lateness may be a tenth of the target's median time
	sentMilli  = 990                   // of the arrivals due, issued
	waitMilli  = 250                   // of each core: threads that could run, and found none free
	pauseMilli = 50                    // of the time, at a stand for garbage collection
	mostShort  = 100                   // times: beyond that nobody can tell
	roomMilli  = 950                   // of the memory it may use
	fewTicks   = 20                    // below that a p99 of the ticks is only a maximum
	manyTicks  = 200
)

// signals are what a generator knows of itself over a stretch of time.
type signals struct {
	span      time.Duration
	paced     bool
	cores     float64       // it may use
	cpu, wait time.Duration // used, and waited for
	pause     time.Duration // of garbage collection
	late      int64         // p99 of ticks, µs behind due
	ticks     int64
	tardy     int64 // of handed arrivals, those that a slot took up too late
	handed    int64
	fellBack  time.Duration // by how much the pacer is further behind than before
	calls     int64         // made
	service   int64         // target's median, µs
	memory    int64         // thousandths of what it may use; 0 = no limit
	files     int64         // calls that found no descriptor left
	ports     int64         // calls that found no local port left
}

// limit is how late it may be, in µs.
func (s *signals) limit() int64 {
	floor := driftFloor
	switch {
	case s.paced && s.ticks >= manyTicks:
		floor = lateFloor
	case s.paced:
		floor = lateFew
	}
	return max(floor.Microseconds(), s.service/latePart)
}

// sent is the thousandths of the arrivals due that were issued.
func (s *signals) sent() int64 {
	if s.fellBack <= 0 || s.span <= 0 {
		return 1000
	}
	return max(1000-int64(s.fellBack*1000/s.span), 1000/mostShort)
}

// waitTells reports that what a call waited for a CPU is more than lateness may be, or
// that the generator is busy itself: a crowded machine whose target is slow enough does
// not measure its generator.
func (s *signals) waitTells() bool {
	return s.calls == 0 || s.service == 0 || s.perCore(s.cpu) > busyMilli/2 || s.wait/time.Duration(s.calls) > time.Duration(s.service)*time.Microsecond/latePart
}

// perCore is the thousandths of each core that a time is over the span.
func (s *signals) perCore(d time.Duration) int64 {
	return int64(float64(d) * 1000 / (float64(max(s.span, time.Microsecond)) * s.cores))
}

// reason is why a level measured its generator; empty when none is seen. What is
// the cause of others comes first.
func (s *signals) reason() string {
	limit, enough := s.limit(), s.ticks >= fewTicks
	switch {
	case s.files > 0:
		return fmt.Sprintf("%d calls found no descriptor left; raise the limit of open files, or lower the load", s.files)
	case s.ports > 0:
		return fmt.Sprintf("%d calls found no local port left; widen net.ipv4.ip_local_port_range, add agents or lower the load", s.ports)
	case s.memory > roomMilli:
		return fmt.Sprintf("used %d %% of the memory it may, more than %d %%; give the generator more memory or less load", s.memory/10, roomMilli/10)
	case enough && s.perCore(s.cpu) > busyMilli:
		return fmt.Sprintf("used %d %% of %s, more than %d %%; add agents or lower the load", s.perCore(s.cpu)/10, coresOf(s.cores), busyMilli/10)
	case enough && s.perCore(s.wait) > waitMilli && s.wait > s.cpu/4 && s.waitTells():
		return fmt.Sprintf("waited for a CPU for %d %% of the time of %s, more than %d %%; keep others off its CPUs, or add agents", s.perCore(s.wait)/10, coresOf(s.cores), waitMilli/10)
	case enough && s.pause*1000 > s.span*pauseMilli:
		return fmt.Sprintf("stood still for garbage collection for %d %% of the time, more than %d %%; give the generator more memory or less load", s.pause*100/s.span, pauseMilli/10)
	case enough && s.sent() < sentMilli:
		return fmt.Sprintf("issued %.1f %% of the arrivals that were due, less than %d %%; add agents or lower the load", float64(s.sent())/10, sentMilli/10)
	case enough && s.late > limit:
		return fmt.Sprintf("woke up %d µs late at p99, more than %d µs; give the generator more CPU or less load", s.late, limit)
	case s.handed >= fewTicks && s.tardy*100 > s.handed:
		return fmt.Sprintf("%.1f %% of its calls began more than %d µs after they were due, more than 1 %%; give the generator more CPU or less load", float64(s.tardy)*100/float64(s.handed), limit)
	}
	return ""
}

func coresOf(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%.4g cores", n)
}

// short is how many times this generator would have to be there, by what it could
// not do: the CPU beyond its limit, the CPU it waited for where it could have run,
// the arrivals it did not issue. 0 when none of these tells.
func (s *signals) short() float64 {
	most := 0.0
	if busy := s.perCore(s.cpu); busy > busyMilli {
		most = float64(busy) / busyMilli
	}
	if s.cpu > 0 && s.perCore(s.wait) > waitMilli {
		free := time.Duration(float64(s.span)*s.cores) - s.cpu
		most = max(most, float64(s.cpu+min(s.wait, max(free, 0)))/float64(s.cpu))
	}
	if sent := s.sent(); sent < sentMilli {
		most = max(most, max(most, 1)*1000/float64(sent))
	}
	return min(most, mostShort)
}

// generator is the verdict on a whole unit: that of its worst stretch, or of the
// whole.
func (m *meter) generator(whole *signals) wire.Generator {
	g := wire.Generator{GCPauseUS: whole.pause.Microseconds(), Lag: m.total, CPUMilli: int64(whole.cpu * 1000 / max(whole.span, time.Microsecond))}
	if m.virtual {
		return g // takes all the CPU there is and loses nothing by it
	}
	g.Reason = cmp.Or(m.mark, whole.reason())
	g.Saturated = g.Reason != ""
	if g.Saturated {
		g.Short = max(m.short, whole.short())
	}
	return g
}

// serviceOf is the target's median service time so far, µs.
func serviceOf(t *metrics.Tally) int64 { return t.Service.Quantile(500) }
