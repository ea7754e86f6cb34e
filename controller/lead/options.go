package lead

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// MinTTL is the shortest lease: a third of it must be enough for an answer from
// a busy server.
const MinTTL = time.Second

// Options of a leader.
type Options struct {
	Bus *bus.Bus
	// Record is what Create stores: ID, Command, Target, Words, Version and Order
	// are the caller's, the rest is filled in.
	Record wire.Run
	// TTL of the lease, at least MinTTL; 0 = wire.LeaseTTL, or what it was before
	// in Take.
	TTL    time.Duration
	Holder string // who leads, for people; empty = this host and process

	// MaxCalls is the budget of calls of the whole run, 0 = none. It is the same
	// one after Take: the record holds what was granted of it.
	MaxCalls int64
	// Rate is what the fleet has sent lately, in calls/s, refused calls included;
	// asked when a quota is first met. nil = not known: the fleet then starts from
	// the bottom.
	Rate func() float64
	// Unpaced: a quota of the target slows nobody down. What its agents hear of one is
	// theirs to obey, or not.
	Unpaced bool

	Log func(text string) // what people should know; nil = nobody listens
}

// fill completes the options.
func (o *Options) fill() error {
	switch {
	case o.Bus == nil:
		return errors.New("lead: no connection")
	case o.TTL != 0 && o.TTL < MinTTL:
		return fmt.Errorf("a lease of %v is too short: want at least %v", o.TTL, MinTTL)
	case o.MaxCalls < 0:
		return fmt.Errorf("a budget of %d calls: want 1 or more, or 0 for none", o.MaxCalls)
	}
	if o.Holder == "" {
		o.Holder = self()
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return nil
}

// self names this process for people.
func self() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s pid %d", host, os.Getpid())
}

// newClaim draws what tells the writes of one holder from all others.
func newClaim() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
