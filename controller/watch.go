package controller

import (
	"sync"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/plan"
)

// watch turns the signs of life of units into events of the run.
type watch struct {
	observe func(Event)
	stop    func()

	mu    sync.Mutex
	event Event
	units map[string]wire.Progress // of the stage under way
}

// newWatch listens; without an observer it does nothing.
func newWatch(b *bus.Bus, run string, observe func(Event)) (*watch, error) {
	w := &watch{observe: observe, stop: func() {}}
	if observe == nil {
		return w, nil
	}
	stop, err := b.WatchProgress(run, w.progress)
	if err != nil {
		return nil, err
	}
	w.stop = stop
	return w, nil
}

func (w *watch) close() { w.stop() }

// begin starts a stage.
func (w *watch) begin(st *plan.Stage) {
	if w.observe == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.event = Event{Phase: st.Phase, Probe: st.Probe, Stage: st.Name, Total: st.Operations()}
	w.units = map[string]wire.Progress{}
	w.observe(w.event)
}

func (w *watch) progress(p wire.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Stage != w.event.Stage {
		return // late
	}
	w.units[p.Unit] = p
	w.event.Done, w.event.Errs = 0, 0
	for _, u := range w.units {
		w.event.Done += u.Done
		w.event.Errs += u.Errors
	}
	w.observe(w.event)
}
