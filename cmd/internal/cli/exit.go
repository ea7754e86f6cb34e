// Package cli is what every command shares: exit codes, error printing, and
// signals turned into a context.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Exit codes of all commands, in one place.
const (
	Passed      = 0   // measured, gates passed
	Failed      = 1   // measured, and the answer is bad
	Unmeasured  = 2   // usage error, refusal, unreachable target, timeout, no verdict
	Interrupted = 130 // interrupted; what was measured is written and marked partial
)

// ErrInterrupted is the cause of a context that a signal ended.
var ErrInterrupted = errors.New("interrupted")

// Exit carries an exit code with an error. A nil Err prints nothing: the
// command has already said what there is to say.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Exit) Unwrap() error { return e.Err }

// Code decides the exit code of an error, and is the only place that does.
func Code(err error) int {
	var exit *Exit
	switch {
	case err == nil:
		return Passed
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, ErrInterrupted):
		return Interrupted
	}
	return Unmeasured
}

// Print writes an error for people: "error: " before each line that starts one,
// further lines of the same error indented. Nothing for an Exit without Err.
func Print(w io.Writer, err error) {
	var exit *Exit
	if errors.As(err, &exit) && exit.Err == nil {
		return
	}
	for i, line := range strings.Split(err.Error(), "\n") {
		switch {
		case strings.HasPrefix(line, " ") || line == "":
			fmt.Fprintln(w, line)
		case i == 0:
			fmt.Fprintln(w, "error: "+line)
		default:
			fmt.Fprintln(w, "       "+line)
		}
	}
}

// sameSignal is how long after the first signal a further one is the same one said
// twice.
const sameSignal = time.Second

// Main runs a command with a context that the first SIGINT or SIGTERM ends with
// ErrInterrupted; a second one leaves at once, after abandon. It returns the
// exit code.
func Main(run func(context.Context) error, abandon func()) int {
	TuneGC()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		cancel(ErrInterrupted)
		for first := time.Now(); time.Since(first) < sameSignal; { // timeout(1) signals a process and its group
			<-signals
		}
		fmt.Fprintln(os.Stderr, "leaving at once")
		abandon()
		os.Exit(Interrupted)
	}()
	err := run(ctx)
	if err != nil {
		Print(os.Stderr, err)
	}
	return Code(err)
}
