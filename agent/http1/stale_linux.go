package http1

import "golang.org/x/sys/unix"

// stale looks, without waiting, whether an idle connection can still carry a
// call: the server has closed it, or on a plain one said something nobody asked
// for. TLS has messages of its own, such as session tickets.
func (c *Conn) stale() bool {
	if c.raw == nil {
		return false
	}
	if c.look == nil {
		c.look = func(fd uintptr) {
			c.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}
			if n, err := unix.Poll(c.poll[:], 0); err != nil || n == 0 {
				c.poll[0].Revents = 0
			}
		}
	}
	if c.raw.Control(c.look) != nil {
		return true
	}
	got := c.poll[0].Revents
	return got&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0 || got&unix.POLLIN != 0 && !c.secured
}

// looker is what a look at a connection needs, kept so that it allocates once.
type looker struct {
	look func(fd uintptr)
	poll [1]unix.PollFd
}
