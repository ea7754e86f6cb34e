//go:build unix

package agent

import "golang.org/x/sys/unix"

// openFileLimit is how many files the process may have open. The soft limit is
// raised to the hard one first.
func openFileLimit() (int64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	if l.Cur < l.Max {
		raised := unix.Rlimit{Cur: l.Max, Max: l.Max}
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil { // some systems refuse what they call the hard limit
			l.Cur = l.Max
		}
	}
	if uint64(l.Cur) > unlimited {
		return unlimited, nil
	}
	return int64(l.Cur), nil
}
