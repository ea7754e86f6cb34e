package agent

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
)

// opened is a target of a run. Whoever comes first opens it, without holding
// the run: a server may take half a minute to start.
type opened struct {
	once   sync.Once
	target target.Target
	err    error
}

// target returns the open target of a unit, opening it on first use; fresh says
// that this call did.
func (r *run) target(ctx context.Context, t wire.Target) (open target.Target, fresh bool, err error) {
	key, err := json.Marshal(t)
	if err != nil {
		return nil, false, err
	}
	o := r.slot(string(key))
	if o == nil {
		return nil, false, errReleased
	}
	o.once.Do(func() {
		fresh = true
		o.target, o.err = target.Open(ctx, t)
	})
	if o.err != nil {
		r.forget(string(key), o) // the next unit tries again
	}
	return o.target, fresh, o.err
}

// slot is where a target is or will be; nil once the run is closed.
func (r *run) slot(key string) *opened {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	o := r.targets[key]
	if o == nil {
		o = &opened{err: errors.New("opening the target was cut short")}
		r.targets[key] = o
	}
	return o
}

func (r *run) forget(key string, o *opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.targets[key] == o {
		delete(r.targets, key)
	}
}

// close ends the lease of the run and closes its targets, the one that is just
// being opened included; none is opened after it.
func (r *run) close() {
	r.lease.quit()
	r.mu.Lock()
	targets := r.targets
	r.closed, r.targets = true, nil
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, o := range targets {
		o.once.Do(func() { o.err = errReleased })
		if o.err == nil {
			_ = o.target.Close(ctx) // bounded by the target itself; how it went was noted by the survey
		}
	}
}
