//go:build race

package web

// racing: the race detector is at work. It takes system calls of the standard
// library for what orders two goroutines that talk over a connection, and ours for
// nothing.
const racing = true
