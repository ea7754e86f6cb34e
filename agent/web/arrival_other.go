//go:build !linux

package web

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// Conn is a TCP connection that knows when what it read last had reached this
// machine; here no kernel tells, so there are none.
type Conn struct {
	net.Conn
	arrived atomic.Int64
	offset  int64
	read    time.Duration
}

// Arrived is when the bytes of the last Read had come, see Since.
func (c *Conn) Arrived() time.Duration { return time.Duration(c.arrived.Load()) }

func dial(ctx context.Context, d *net.Dialer, network, addr string) (net.Conn, error) {
	return d.DialContext(ctx, network, addr)
}

// Written is unknown.
func (c *Conn) Written() int64 { return 0 }

// Deaf is unknown.
func (c *Conn) Deaf(int64) bool { return false }
