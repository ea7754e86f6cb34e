package controller

import (
	"fmt"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/guard"
	"ordeal/controller/plan"
	"ordeal/controller/roster"
	"ordeal/metrics/price"
	"ordeal/metrics/prom"
)

// checkEvery is how often the stop conditions are looked at.
const checkEvery = 250 * time.Millisecond

// Stopped is why a run was ended by what it was told to look out for.
type Stopped struct {
	Reason string
	// Budget: nothing is wrong with the target, the allowance is used up.
	Budget bool
}

func (s *Stopped) Error() string { return s.Reason }

// watch follows the samples of units: for display, for the stop conditions, and
// for the budget of money.
type watch struct {
	observe func(Event)
	meter   *prom.Controller
	began   time.Time
	price   price.Rate
	stops   []func()

	mu    sync.Mutex
	event Event
	units map[string]seen   // of the stage under way
	spent map[string]tokens // of its units, as far as samples told
	clean map[string]bool   // stages that send plain load
	live  *guard.Live
	cost  *guard.Cost
	pace  pace
	load  *live // nil: nobody watches a load
}

// tokens is the usage of a unit.
type tokens struct{ in, out int64 }

// seen is how far a unit is.
type seen struct{ done, errs int64 }

// newWatch watches nothing yet: see follow.
func newWatch(r *run) *watch {
	return &watch{observe: r.opt.Observe, meter: r.opt.Meter, began: time.Now(), units: map[string]seen{}, spent: map[string]tokens{}, clean: map[string]bool{}, live: guard.NewLive(r.opt.StopWhen, 0), load: newLive(r)}
}

// follow listens, and ends the run when a condition is met.
func (w *watch) follow(r *run) error {
	if r.opt.MaxCost > 0 {
		rate, err := costRate(&r.opt)
		if err != nil {
			return err
		}
		w.price, w.cost = rate, guard.NewCost(r.opt.MaxCost)
	}
	unsubscribe, err := r.opt.Bus.OnProgress(r.id, w.progress)
	if err != nil {
		return err
	}
	w.stops = append(w.stops, unsubscribe, every(checkEvery, func() bool {
		why := w.tripped()
		if why != nil {
			r.stop(why)
		}
		return why == nil
	}))
	if w.load != nil {
		w.stops = append(w.stops, every(liveEvery, w.load.show))
	}
	if r.opt.Meter != nil {
		w.stops = append(w.stops, every(time.Second, r.count))
	}
	return nil
}

// count shows the fleet to whoever scrapes this process.
func (r *run) count() bool {
	var f prom.Fleet
	for _, m := range r.roster.All() {
		switch m.State {
		case roster.Idle:
			f.Ready++
		case roster.Busy:
			f.Busy++
		case roster.Draining:
			f.Draining++
		case roster.Incompatible:
			f.Incompatible++
		case roster.Lost:
			f.Lost++
		}
	}
	r.opt.Meter.Fleet(f)
	for n := r.opt.Bus.Reconnects(); r.reconnects < n; r.reconnects++ {
		r.opt.Meter.Reconnects()
	}
	return true
}

// costRate is the price of the target's tokens: without one a budget of money
// cannot be kept.
func costRate(opt *Options) (price.Rate, error) {
	s := &opt.Spec
	if s.PriceIn > 0 || s.PriceOut > 0 {
		return price.Rate{Input: s.PriceIn, Output: s.PriceOut, CachedInput: s.PriceIn}, nil
	}
	if m, ok := price.First(s.Target.Model, opt.Prices...); ok {
		return m.Rate, nil
	}
	return price.Rate{}, fmt.Errorf("--max-cost needs a price: %q is not in the table; give --price-in and --price-out", s.Target.Model)
}

func (w *watch) close() {
	for _, stop := range w.stops {
		stop()
	}
}

// begin starts a stage.
func (w *watch) begin(st *plan.Stage) {
	w.load.begin(st)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.event = Event{Phase: st.Phase, Probe: st.Probe, Stage: st.Name, Total: st.Operations()}
	w.units, w.spent = map[string]seen{}, map[string]tokens{}
	w.clean[st.Name] = st.Units[0].Load != nil && st.Units[0].Faults == nil
	w.show()
}

func (w *watch) show() {
	w.meter.Progress(prom.Progress{Planned: w.event.Total, Done: w.event.Done, Failed: w.event.Errs})
	if w.observe != nil {
		w.observe(w.event)
	}
}

// progress takes a sample in.
func (w *watch) progress(p wire.Progress) {
	w.load.add(&p)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(w.began)
	if s := p.Sample; s != nil {
		// Under faults and malformed calls a failure is what the run came for.
		if w.clean[p.Stage] {
			w.live.Add(now, guard.Sample{Outcomes: s.Outcomes, Latency: s.Latency})
		}
		w.pace.add(now, s.Outcomes.Total())
		before := w.spent[p.Unit]
		w.spend(p.Unit, tokens{before.in + s.TokensIn, before.out + s.TokensOut})
	}
	if p.Stage != w.event.Stage {
		return // late
	}
	w.move(p.Unit, seen{p.Done, p.Errors})
}

// spend brings the cost of a unit up to date.
func (w *watch) spend(unit string, now tokens) {
	if w.cost == nil {
		return
	}
	before := w.spent[unit]
	w.spent[unit] = now
	w.cost.Spend(w.price.Cost(max(0, now.in-before.in), max(0, now.out-before.out), 0))
}

// move brings the sums of the stage up to date.
func (w *watch) move(unit string, now seen) {
	before := w.units[unit]
	if now == before {
		return
	}
	w.units[unit] = now
	w.event.Done += now.done - before.done
	w.event.Errs += now.errs - before.errs
	w.show()
}

// result brings a finished unit up to date, of which no sample may have come.
func (w *watch) result(r *wire.Result) {
	if !r.Final {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Stage == w.event.Stage && r.Tally != nil {
		w.move(r.Unit, seen{r.Tally.Calls(), r.Tally.Failures()})
		w.spend(r.Unit, tokens{r.Tally.TokensIn.Sum(), r.Tally.TokensOut.Sum()})
	}
}

// sent is how many operations of a unit have gone out, as far as its agent said.
func (w *watch) sent(unit string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.units[unit].done
}

// rate of the fleet, in calls per second, over the last seconds.
func (w *watch) rate() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pace.rate(time.Since(w.began))
}

// every calls f until it returns false or end is called.
func every(d time.Duration, f func() bool) (end func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			if !f() {
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (w *watch) tripped() *Stopped {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.live.Check(time.Since(w.began)); ok {
		return &Stopped{Reason: t.String()}
	}
	if w.cost != nil && w.cost.Over() {
		return &Stopped{Reason: fmt.Sprintf("the budget of --max-cost is spent: $%.4f", w.cost.Spent()), Budget: true}
	}
	return nil
}

// pace measures a rate over the last paceSlots seconds.
type pace struct {
	slots [paceSlots + 1]struct {
		second int64
		calls  int64
	}
}

const paceSlots = 3

func (p *pace) add(at time.Duration, calls int64) {
	second := int64(at / time.Second)
	s := &p.slots[second%int64(len(p.slots))]
	if s.second != second {
		s.second, s.calls = second, 0
	}
	s.calls += calls
}

// rate counts whole seconds, the current one left out unless it is the first.
func (p *pace) rate(now time.Duration) float64 {
	current := int64(now / time.Second)
	var calls int64
	for _, s := range p.slots {
		if s.second < current && s.second >= current-paceSlots || current == 0 && s.second == 0 {
			calls += s.calls
		}
	}
	span := min(float64(current), paceSlots)
	if current == 0 {
		span = max(now.Seconds(), 0.1)
	}
	return float64(calls) / span
}
