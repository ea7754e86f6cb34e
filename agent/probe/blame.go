package probe

import (
	"strings"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Texts of the errors of a system that has run out of what a connection needs. The
// clients hand on a redacted line of text, not the error.
const (
	noFiles       = "too many open files"             // EMFILE, ENFILE
	noPort        = "cannot assign requested address" // EADDRNOTAVAIL
	noPortWindows = "Only one usage of each socket address"
)

// blame takes a failure to connect upon us that is ours: without a descriptor or a
// local port nothing was said to the target.
func (m *meter) blame(x *metrics.Exchange) {
	if x.Outcome != metrics.Connection || x.Origin != metrics.FromTarget {
		return
	}
	switch {
	case strings.Contains(x.Message, noFiles):
		m.files.Add(1)
	case strings.Contains(x.Message, noPort), strings.Contains(x.Message, noPortWindows):
		m.ports.Add(1)
	default:
		return
	}
	x.Outcome, x.Origin, x.Executed = metrics.HarnessError, metrics.FromGenerator, metrics.No
}

// ours turns an error of opening sessions into our own failure where it is one.
func ours(err error) error {
	if err == nil {
		return nil
	}
	f := wire.Failure{Class: "harness", Message: oneLine(err.Error())}
	switch text := err.Error(); {
	case strings.Contains(text, noFiles):
		f.Remedy = "raise the limit of open files of the agent (ulimit -n), or lower the load"
	case strings.Contains(text, noPort), strings.Contains(text, noPortWindows):
		f.Remedy = "widen net.ipv4.ip_local_port_range, add agents or lower the load"
	default:
		return err
	}
	return &target.OpenError{Cause: f}
}
