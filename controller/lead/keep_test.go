package lead

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// tales collects what people are told.
type tales struct {
	mu   sync.Mutex
	text []string
}

func (s *tales) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, text)
}

func (s *tales) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.text, "\n")
}

func TestRenewals(t *testing.T) {
	for _, ttl := range []time.Duration{MinTTL, wire.LeaseTTL, time.Minute} {
		t.Run(ttl.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := w.create(func(o *Options) { o.TTL = ttl })
				for range 300 { // looks at odd moments
					time.Sleep(ttl/10 + time.Millisecond)
					if !c.Sure() {
						t.Fatal("not sure, with a server that answers")
					}
				}
				r := w.run()
				if r.TTL != ttl || r.Renewals < 85 || r.Renewals > 92 {
					t.Errorf("%d renewals of %v in 30 times that, want three each", r.Renewals, r.TTL)
				}
			})
		})
	}
}

// The whole lease counts from the sending of the last renewal that was stored.
func TestSureEndsWithTheLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told tales
		c := w.create(func(o *Options) { o.Log = told.add })
		time.Sleep(time.Minute)
		c.link.freeze()
		last := time.Now()
		for c.Sure() {
			time.Sleep(time.Millisecond)
		}
		if d := time.Since(last); d < 2*wire.LeaseTTL/3-time.Second || d > wire.LeaseTTL {
			t.Errorf("sure for %v behind the cut", d)
		}
		if _, err := w.ask(wire.Ask{}); err == nil {
			t.Error("an answer through a cut link")
		}
		time.Sleep(time.Second)
		if !strings.Contains(told.all(), "run r1: its lease is not renewed, so this controller answers no agent: ") {
			t.Errorf("told:\n%s", told.all())
		}
		c.link.thaw()
		time.Sleep(3 * time.Second)
		if g, err := w.ask(wire.Ask{}); err != nil || g.Generation != 1 || !c.Sure() {
			t.Errorf("grant %+v, %v after the cut", g, err)
		}
		if !strings.Contains(told.all(), "run r1: its lease is renewed after ") {
			t.Errorf("told:\n%s", told.all())
		}
	})
}

// Requests and orders that waited in a stopped process are looked at by the clock
// of the moment, before any renewal.
func TestWokenLeaderIsSilent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		c.link.freeze()
		time.Sleep(wire.LeaseTTL)
		asked, ordered := make(chan wire.Grant, 1), make(chan wire.Order, 1)
		go func() {
			g, _ := w.ask(wire.Ask{})
			asked <- g
		}()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), wire.AskWait)
			defer cancel()
			o, _ := w.bus.SendOrder(ctx, "r1", wire.Order{Kind: wire.OrderHalt})
			ordered <- o
		}()
		time.Sleep(time.Second)
		c.link.thaw() // both arrive at once, the next renewal takes a moment
		if g := <-asked; g.Generation != 0 {
			t.Errorf("answered %+v without a lease", g)
		}
		if o := <-ordered; o.Holder != "" || c.Context().Err() != nil {
			t.Errorf("answered %+v without a lease, context %v", o, c.Context().Err())
		}
	})
}

// The time an answer takes is not the leader's.
func TestLeaseCountsFromTheSending(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		const slow = 1500 * time.Millisecond
		done := make(chan struct{})
		c.link.sent(func(p []byte) {
			if bytes.Contains(p, []byte("$KV."+wire.RunBucket)) {
				c.link.down.shut()
				time.AfterFunc(slow, func() { c.link.down.open(); close(done) })
			}
		})
		<-done
		c.link.sent(nil)
		synctest.Wait() // the answer is read
		if left := c.left(); left > wire.LeaseTTL-slow || left < wire.LeaseTTL-slow-time.Millisecond {
			t.Errorf("sure for another %v after an answer that took %v", left, slow)
		}
	})
}

// A write of which no answer came back was stored nevertheless: the leader goes
// on from there, and does not take itself for somebody else.
func TestLostAnswerIsNoLostLead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		for range 5 {
			before := w.run().Renewals
			c.link.sent(func(p []byte) {
				if bytes.Contains(p, []byte("$KV."+wire.RunBucket)) {
					c.link.down.shut() // before its answer
				}
			})
			time.Sleep(wire.LeaseTTL / 2)
			c.link.sent(nil)
			if w.run().Renewals == before {
				t.Fatal("no renewal was stored: the test tests nothing")
			}
			time.Sleep(wire.LeaseTTL)
			if c.Sure() {
				t.Fatal("sure without an answer")
			}
			c.link.down.open()
			time.Sleep(3 * time.Second)
			if !c.Sure() || c.Err() != nil {
				t.Fatalf("sure %v, err %v; want the lead back", c.Sure(), c.Err())
			}
		}
	})
}

func TestServerRestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		time.Sleep(time.Minute)
		w.stop()
		synctest.Wait() // the broken connection is noticed
		if c.Sure() {
			t.Error("sure without a connection")
		}
		time.Sleep(2 * wire.LeaseTTL)
		w.start()
		if err := c.Update(t.Context(), func(r *wire.Run) { r.Plan = "abc" }); err != nil {
			t.Fatal(err)
		}
		if !c.Sure() || c.Generation() != 1 {
			t.Errorf("sure %v, generation %d", c.Sure(), c.Generation())
		}
		for w.bus.Reconnects() == 0 {
			time.Sleep(time.Second)
		}
		if r := w.run(); r.Plan != "abc" || r.Generation != 1 {
			t.Errorf("record %+v", r)
		}
	})
}

// Nobody has renewed over the new connection yet: a successor may have come in
// between.
func TestNewConnectionIsNotTrusted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(func(o *Options) { o.TTL = time.Minute })
		w.stop()
		w.start()
		for !c.bus.Connected() {
			time.Sleep(time.Millisecond)
		}
		c.link.up.shut()
		for range 20 {
			if c.bus.Reconnects() > 0 && c.Sure() {
				t.Fatal("sure over a connection without a renewal")
			}
			time.Sleep(100 * time.Millisecond)
		}
		c.link.up.open()
		time.Sleep(5 * time.Second)
		if !c.Sure() {
			t.Error("not sure after the renewal")
		}
	})
}

func TestLeaderWhoseRecordIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		r, revision, err := w.bus.Run(t.Context(), "r1")
		if err != nil {
			t.Fatal(err)
		}
		r.Claim, r.State, r.Reason = "other", wire.Stopped, "halted: by hand"
		if _, err := w.bus.UpdateRun(t.Context(), r, revision); err != nil {
			t.Fatal(err)
		}
		<-c.Lost()
		synctest.Wait() // it hangs up
		if err := c.Err(); !errors.Is(err, bus.ErrFenced) || !strings.Contains(err.Error(), "it is stopped: halted: by hand") {
			t.Errorf("err %v", err)
		}
		if _, err := w.ask(wire.Ask{}); !errors.Is(err, bus.ErrGone) {
			t.Errorf("err %v, want nobody there", err)
		}
	})
}

func TestUpdateIsStoredWhenItReturns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				g := wire.GangRecord{Stage: "concurrency-4", Gang: fmt.Sprint("g", i), Units: []string{"u"}, Agents: []string{"a"}}
				if err := c.Update(t.Context(), func(r *wire.Run) { r.Gangs = append(r.Gangs, g) }); err != nil {
					t.Error(err)
				}
				found := false
				for _, have := range w.run().Gangs {
					found = found || have.Gang == g.Gang
				}
				if !found {
					t.Errorf("gang %s is not stored", g.Gang)
				}
			})
		}
		all.Wait()
		if n := len(w.run().Gangs); n != 20 {
			t.Errorf("%d gangs stored, want 20", n)
		}
	})
}

func TestNotesAreStoredTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		before := w.run().Renewals
		for i := range 10_000 {
			c.Note(func(r *wire.Run) { r.Stage, r.Done, r.Units = "latency", i+1, 10_000 })
			time.Sleep(time.Millisecond)
		}
		if n := w.run().Renewals - before; n < 15 || n > 20 {
			t.Errorf("%d writes in 10 s, want one per half second", n)
		}
		time.Sleep(noteEvery)
		if r := w.run(); r.Done != 10_000 || r.Stage != "latency" {
			t.Errorf("%d of %d done in %q", r.Done, r.Units, r.Stage)
		}
	})
}
