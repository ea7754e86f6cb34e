package web

import (
	"crypto/tls"
	"net"
	"time"
)

// began is the zero of arrival times, which are monotonic.
var began = time.Now()

// Since returns a moment in the terms of Conn.Arrived.
func Since(t time.Time) time.Duration { return t.Sub(began) }

// StampedConn finds the connection below a TLS one; nil when it does not tell
// arrival times.
func StampedConn(c net.Conn) *Conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	stamped, _ := c.(*Conn)
	return stamped
}

// maxAge is the longest that bytes are believed to have waited to be read.
const maxAge = 10 * time.Second

// arrival turns the kernel's stamp, which is of the system's clock, into the time
// since began. The clock may be set in the meantime: a stamp read just after that
// says nothing, and the moment of reading counts.
func (c *Conn) arrival(now time.Time, stamp int64) time.Duration {
	mono := now.Sub(began)
	offset := now.UnixNano() - int64(mono)
	drift := time.Duration(max(offset-c.offset, c.offset-offset))
	tolerated := time.Millisecond + (mono-c.read)/1000
	first := c.offset == 0
	c.offset, c.read = offset, mono
	age := time.Duration(now.UnixNano() - stamp)
	if stamp == 0 || age < 0 || age > maxAge || !first && drift > tolerated {
		return mono
	}
	return max(mono-age, time.Duration(c.arrived.Load()))
}
