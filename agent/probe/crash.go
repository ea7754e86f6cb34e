package probe

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"ordeal/agent/wire"
)

var errCrashed = errors.New("the unit crashed")

// crash catches panics of a unit's goroutines: a bug that one unit meets fails
// that unit, and not the agent with all it has in hand. The first one is kept
// and ends the others.
type crash struct {
	stop context.CancelCauseFunc

	mu      sync.Mutex
	failure *wire.Failure
}

// guard runs f and catches its panic.
func (c *crash) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			c.note(p, debug.Stack())
		}
	}()
	f()
}

func (c *crash) note(p any, stack []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = &wire.Failure{Class: "harness", Message: oneLine(fmt.Sprintf("panic: %v", p)),
			Remedy: "report this bug with the stack below", Stderr: string(stack)}
		c.stop(errCrashed)
	}
}

// seen is the failure of a unit that panicked; nil for all others.
func (c *crash) seen() *wire.Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// spawn runs f on a goroutine of the unit that wg waits for.
func (env *Env) spawn(wg *sync.WaitGroup, f func()) {
	wg.Go(func() { env.crash.guard(f) })
}
