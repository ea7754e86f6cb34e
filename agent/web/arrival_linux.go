package web

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Conn is a TCP connection that knows when what it read last had reached this
// machine, and whether what it wrote can have reached the other. The kernel takes
// the time as it receives a segment, so it does not grow with the time until a
// goroutine gets to read, which on a busy core is milliseconds.
type Conn struct {
	*net.TCPConn
	raw     syscall.RawConn
	arrived atomic.Int64 // after began, ns
	written atomic.Int64 // bytes
	failed  atomic.Bool  // by a reset, or anything but an orderly close

	mu     sync.Mutex // guards what follows, which one Read uses
	recv   func(fd uintptr) bool
	hdr    unix.Msghdr
	iov    unix.Iovec
	oob    [64]byte
	n      int
	errno  syscall.Errno
	offset int64         // of the system's clock before the monotonic one, at the last read
	read   time.Duration // of the last read, after began

	end    sync.Mutex // guards what follows
	ended  bool
	finish ending // at the end
}

// ending is how the other side stands: whether it has closed, and how many bytes it
// had acknowledged.
type ending struct {
	closed bool
	taken  int64
}

// dial connects, and asks the kernel for stamps. Without them a connection is an
// ordinary one.
func dial(ctx context.Context, d *net.Dialer, network, addr string) (net.Conn, error) {
	plain, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	tcp, ok := plain.(*net.TCPConn)
	if !ok {
		return plain, nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return plain, nil
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err != nil || refused != nil {
		return plain, nil
	}
	c := &Conn{TCPConn: tcp, raw: raw}
	c.recv = c.receive
	return c, nil
}

// Arrived is when the bytes of the last Read had come, see Since.
func (c *Conn) Arrived() time.Duration { return time.Duration(c.arrived.Load()) }

// Read reads as any connection does, and takes the stamp with the bytes.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.iov.Base = &p[0]
	c.iov.SetLen(len(p))
	err := c.raw.Read(c.recv)
	c.iov.Base = nil
	switch {
	case err != nil:
		if op, ok := err.(*net.OpError); ok {
			op.Op = "read"
		}
		return 0, err
	case c.errno != 0:
		c.failed.Store(true)
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError("recvmsg", c.errno)}
	case c.n == 0:
		return 0, io.EOF
	}
	c.arrived.Store(int64(c.arrival(time.Now(), c.stamp())))
	return c.n, nil
}

// receive tries once; false asks to be called again when there is something.
func (c *Conn) receive(fd uintptr) bool {
	for {
		c.hdr = unix.Msghdr{Iov: &c.iov, Control: &c.oob[0]}
		c.hdr.SetIovlen(1)
		c.hdr.SetControllen(len(c.oob))
		n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&c.hdr)), 0)
		if errno == unix.EINTR {
			continue
		}
		if c.n, c.errno = int(n), errno; errno != 0 {
			c.n = 0
		}
		if racing && c.n > 0 {
			_, _ = syscall.Read(int(fd), nil) // reads nothing; see racing
		}
		return errno != unix.EAGAIN
	}
}

// stamp is the kernel's time of the last segment read, ns since 1970; 0 when it
// gave none, as for bytes that came before it was asked.
func (c *Conn) stamp() int64 {
	const header, size = unix.SizeofCmsghdr, unix.SizeofCmsghdr + int(unsafe.Sizeof(unix.Timespec{}))
	if int(c.hdr.Controllen) < size {
		return 0
	}
	head := (*unix.Cmsghdr)(unsafe.Pointer(&c.oob[0]))
	if head.Level != unix.SOL_SOCKET || head.Type != unix.SO_TIMESTAMPNS {
		return 0
	}
	return (*unix.Timespec)(unsafe.Pointer(&c.oob[header])).Nano()
}

// Write counts.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	c.written.Add(int64(n))
	if err != nil && !errors.Is(err, unix.EPIPE) { // what a write meets after an orderly close
		c.failed.Store(true)
	}
	return n, err
}

// ReadFrom takes the way of Write, which counts.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, r)
}

// Written is how many bytes have been handed to the kernel.
func (c *Conn) Written() int64 { return c.written.Load() }

// Deaf reports that the other side had closed before it took a byte beyond the
// first sent. The segment that says it has closed acknowledges all that came until
// then, and what comes later is answered by a reset. A connection that was reset
// without a close says nothing: what came before may not have been acknowledged.
func (c *Conn) Deaf(sent int64) bool {
	c.end.Lock()
	defer c.end.Unlock()
	if !c.ended {
		c.look()
	}
	return c.finish.closed && c.finish.taken <= sent
}

// Close keeps what Deaf tells.
func (c *Conn) Close() error {
	c.end.Lock()
	if !c.ended {
		c.look()
		c.ended = true
	}
	c.end.Unlock()
	return c.TCPConn.Close()
}

// look asks the kernel, which counts the opening of the connection as a byte
// acknowledged.
func (c *Conn) look() {
	c.finish = ending{}
	_ = c.raw.Control(func(fd uintptr) { // a closed connection tells nothing
		var one [1]byte
		n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if err != nil && err != unix.EAGAIN {
			c.failed.Store(true) // a reset is told once; after that the end looks orderly
		}
		if err != nil || n > 0 || c.failed.Load() {
			return
		}
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			c.finish = ending{closed: true, taken: int64(info.Bytes_acked) - 1}
		}
	})
}
