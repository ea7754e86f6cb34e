package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// seconds is a duration flag that takes Go's form (250ms, 1m30s) and a bare
// number of seconds.
type seconds struct{ d *time.Duration }

func (s seconds) String() string {
	if s.d == nil {
		return "0s"
	}
	return s.d.String()
}

func (seconds) Type() string { return "duration" }

func (s seconds) Set(text string) error {
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		if !(f > -1e9 && f < 1e9) {
			return fmt.Errorf("%q is no number of seconds", text)
		}
		*s.d = time.Duration(f * float64(time.Second))
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is no duration: write 30s, 250ms or a number of seconds", text)
	}
	*s.d = d
	return nil
}

func durationVar(fs *pflag.FlagSet, d *time.Duration, name, usage string) {
	fs.Var(seconds{d}, name, usage)
	if *d == 0 {
		fs.Lookup(name).DefValue = "" // help says in words what 0 means
	}
}
