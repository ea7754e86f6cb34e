package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
)

// Announce puts the agent into the fleet registry until three heartbeats pass
// without a renewal. It writes to the agent's own key and reads nothing: an
// agent may do no more.
func (b *Bus) Announce(ctx context.Context, h wire.Hello) error {
	data, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode agent %s: %w", h.ID, err)
	}
	if _, err := b.js.Publish(ctx, wire.RegistrySubject(h.ID), data); err != nil {
		return fmt.Errorf("announce agent %s: %w", h.ID, err)
	}
	return nil
}

// Leave takes the agent out of the registry.
func (b *Bus) Leave(ctx context.Context, id string) error {
	m := nats.NewMsg(wire.RegistrySubject(id))
	m.Header.Set("KV-Operation", "DEL") // of the key-value layout, ADR-8
	if _, err := b.js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("take agent %s out of the registry: %w", id, err)
	}
	return nil
}

// Seen is an agent with the time of its last heartbeat, by the server's clock.
type Seen struct {
	wire.Hello
	At time.Time
	// Twin: another process announces itself under the same name. Neither can be
	// told from the other.
	Twin bool
}

// Fleet is a live copy of the registry.
type Fleet struct {
	bus  *Bus
	kv   jetstream.KeyValue
	stop func()

	mu         sync.Mutex
	agents     map[string]entry
	lost       map[string]Seen
	changed    chan struct{} // closed by the next change
	reconnects uint64        // of the connection that is listened on
}

// entry of an agent, and when it was renewed by this process's clock.
type entry struct {
	Seen
	heard time.Time
	other string    // instance that had the entry before
	twins time.Time // when one came back that had been followed by another
}

// follow takes over who had the entry before. A process that was started again
// follows the one before it; one that comes back after another is alive beside it.
func (e *entry) follow(before entry) {
	e.other, e.twins = before.other, before.twins
	if e.Instance == "" || before.Instance == "" || e.Instance == before.Instance {
		return
	}
	if e.Instance == before.other {
		e.twins = e.heard
	}
	e.other = before.Instance
}

const (
	// silence is how long an agent may be silent before it counts as lost: the
	// time for which the server keeps its entry.
	silence = 3 * wire.Heartbeat
	// lookEvery is how often silent agents are looked for.
	lookEvery = wire.Heartbeat / 4
	// keptLost bounds how many lost agents a Fleet remembers.
	keptLost = 1024
)

// ErrNoRegistry is returned by Fleet where nobody has set a fleet up yet.
var ErrNoRegistry = errors.New("no fleet registry on this server: a scan or an agent with --nats sets it up")

// Fleet follows the registry until Close; what stands there at the moment is in
// it when it returns.
func (b *Bus) Fleet(ctx context.Context) (*Fleet, error) {
	kv, err := b.js.KeyValue(ctx, wire.AgentBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, ErrNoRegistry
	}
	if err != nil {
		return nil, fmt.Errorf("open the fleet registry: %w", err)
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &Fleet{bus: b, kv: kv, agents: map[string]entry{}, lost: map[string]Seen{}, changed: make(chan struct{}), reconnects: b.Reconnects()}
	watch, err := kv.WatchAll(watching)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch the fleet registry: %w", err)
	}
	complete, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		f.follow(watching, watch, sync.OnceFunc(func() { f.backdate(); close(complete) }))
	}()
	f.stop = func() { cancel(); <-done }
	select {
	case <-complete:
		return f, nil
	case <-ctx.Done():
		f.stop()
		return nil, fmt.Errorf("read the fleet registry: %w", context.Cause(ctx))
	}
}

// follow listens until ctx ends, and begins anew on each connection: nats.go
// takes ten seconds and more to notice that its consumer has gone with the old
// one.
func (f *Fleet) follow(ctx context.Context, watch jetstream.KeyWatcher, complete func()) {
	for {
		f.listen(ctx, watch, complete)
		_ = watch.Stop() // what it says of a consumer that is gone already does not matter
		if watch = f.watchAgain(ctx); watch == nil {
			return
		}
	}
}

// watchAgain is a new watch, tried for until ctx ends; then nil.
func (f *Fleet) watchAgain(ctx context.Context) jetstream.KeyWatcher {
	for ctx.Err() == nil {
		if watch, err := f.kv.WatchAll(ctx); err == nil {
			return watch
		}
		select {
		case <-ctx.Done():
		case <-time.After(readAgain):
		}
		f.expire(time.Now())
	}
	return nil
}

// listen takes over what a watch sends, until ctx ends or the connection is
// another one.
func (f *Fleet) listen(ctx context.Context, watch jetstream.KeyWatcher, complete func()) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case e, ok := <-watch.Updates():
			switch {
			case !ok:
				return
			case e != nil:
				f.update(e)
			default: // all that was there has been sent
				complete()
			}
		case now := <-look.C:
			if f.expire(now) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// update takes a change over. What is no entry of the agent whose key it has is
// passed over.
func (f *Fleet) update(e jetstream.KeyValueEntry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var h wire.Hello
	switch {
	case e.Operation() != jetstream.KeyValuePut:
		delete(f.agents, e.Key())
		delete(f.lost, e.Key())
	case json.Unmarshal(e.Value(), &h) == nil && h.ID == e.Key():
		renewed := entry{Seen: Seen{Hello: h, At: e.Created()}, heard: time.Now()}
		renewed.follow(f.agents[e.Key()])
		f.agents[e.Key()] = renewed
		delete(f.lost, e.Key())
	default:
		return
	}
	f.tell()
}

// backdate gives the entries that were there at the beginning the age they have
// by the server's clock, of which the newest entry shows the time.
func (f *Fleet) backdate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var newest time.Time
	for _, e := range f.agents {
		if e.At.After(newest) {
			newest = e.At
		}
	}
	for id, e := range f.agents {
		e.heard = e.heard.Add(e.At.Sub(newest))
		f.agents[id] = e
	}
}

// expire moves the agents that have been silent for too long to the lost ones.
// The server drops their entries by itself but does not say so: that would need
// roll-ups, see registry in setup.go. What this process could not hear while its
// own connection was down counts as no silence; it returns true once there is a
// new one.
func (f *Fleet) expire(now time.Time) (reconnected bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reconnected = f.reconnects != f.bus.Reconnects()
	f.reconnects = f.bus.Reconnects()
	for id, e := range f.agents {
		switch {
		case reconnected || !f.bus.Connected():
			e.heard = now
			f.agents[id] = e
		case now.Sub(e.heard) > silence:
			delete(f.agents, id)
			if len(f.lost) < keptLost {
				f.lost[id] = e.Seen
			}
			f.tell()
		}
	}
	return reconnected
}

// tell is called with mu held.
func (f *Fleet) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Agents that stand in the registry, in no order.
func (f *Fleet) Agents() []Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Seen, 0, len(f.agents))
	for _, e := range f.agents {
		e.Twin = !e.twins.IsZero() && time.Since(e.twins) < silence
		all = append(all, e.Seen)
	}
	return all
}

// Lost are the agents, in no order, that have fallen silent while the registry
// was followed: they did not take their leave, and have not come back.
func (f *Fleet) Lost() []Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.lost))
}

// Changed is closed by the next change of the registry, a heartbeat included.
// Take it before looking, so that no change is missed.
func (f *Fleet) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Close stops following.
func (f *Fleet) Close() { f.stop() }
