package mcp

import (
	"context"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// outbox sends lines into a pipe, many with one write. Its writer is a goroutine
// that writes what has gathered; a line that is alone is written by its own
// sender, as far as that goes without waiting.
//
// A line goes out whole or not at all: once it has been handed to the pipe, no end
// of a context keeps its rest back.
type outbox struct {
	pipe *os.File
	raw  syscall.RawConn

	mu     sync.Mutex // guards what follows
	lines  []outLine  // waiting, in order
	buf    []byte     // their bytes
	seq    int64      // of the last line that came
	busy   bool       // somebody is at the pipe, or on the way there
	failed error      // nothing can be sent any more

	wake chan struct{} // sent once by whoever sets busy and does not write itself

	// Of the one who set busy:
	batch []byte // at the pipe
	sent  int    // of it
	gone  []outLine
	once  func(fd uintptr) bool // a write of batch that does not wait
}

// outLine is a line on its way.
type outLine struct {
	seq  int64
	call int64 // id of the plain call it is; 0 for others
	end  int   // behind it in its buffer
	done chan error
}

// maxBatch bounds what one write takes, but for a single line: what has been
// handed to a pipe that nobody reads cannot be taken back.
const maxBatch = 16 << 10

func newOutbox(pipe *os.File) *outbox {
	o := &outbox{pipe: pipe, wake: make(chan struct{}, 1)}
	o.raw, _ = pipe.SyscallConn() // without it every line is the writer's
	o.once = func(fd uintptr) bool {
		if n, err := syscall.Write(int(fd), o.batch); err == nil {
			o.sent = n // an error is met again by the writer
		}
		return true
	}
	return o
}

// send puts a line out and waits until it is written, or ctx ends. begun tells
// whether any of it has been, or will be, written.
func (o *outbox) send(ctx context.Context, body []byte) (begun bool, err error) {
	done := make(chan error, 1)
	o.mu.Lock()
	o.buf = append(o.buf, body...)
	seq, err := o.queue(len(body), 0, done)
	if err != nil {
		o.mu.Unlock()
		return false, err
	}
	o.deliver(true)
	select {
	case err := <-done:
		return err == nil, err
	case <-ctx.Done():
	}
	return !o.withdraw(seq), ctx.Err()
}

// call puts out a call of a frame without waiting. alone says that nothing else is
// in flight.
func (o *outbox) call(f *frame, id int64, args []byte, alone bool) (seq int64, err error) {
	o.mu.Lock()
	before := len(o.buf)
	o.buf = f.appendBody(o.buf, id, args)
	seq, err = o.queue(len(o.buf)-before, id, nil)
	if err != nil {
		o.mu.Unlock()
		return 0, err
	}
	o.deliver(alone)
	return seq, nil
}

// queue makes a line of the n bytes that were appended. Callers hold mu.
func (o *outbox) queue(n int, call int64, done chan error) (seq int64, err error) {
	if o.failed != nil {
		o.buf = o.buf[:0]
		return 0, o.failed
	}
	oneLine(o.buf[len(o.buf)-n:])
	o.buf = append(o.buf, '\n')
	o.seq++
	o.lines = append(o.lines, outLine{seq: o.seq, call: call, end: len(o.buf), done: done})
	return o.seq, nil
}

// deliver gets the lines on their way. Callers hold mu, which it unlocks.
func (o *outbox) deliver(alone bool) {
	if o.busy {
		o.mu.Unlock()
		return
	}
	o.busy = true
	if alone && o.raw != nil && o.take() {
		o.mu.Unlock()
		if o.raw.Write(o.once) == nil && o.sent == len(o.batch) {
			o.written()
			o.mu.Lock()
			o.busy = len(o.lines) > 0
			if !o.busy {
				o.mu.Unlock()
				return
			}
			o.mu.Unlock()
		}
	} else {
		o.mu.Unlock()
	}
	o.wake <- struct{}{}
}

// take moves waiting lines to the pipe. Callers hold mu, and the place at the
// pipe.
func (o *outbox) take() bool {
	if len(o.lines) == 0 {
		return false
	}
	n := 1
	for n < len(o.lines) && o.lines[n].end <= maxBatch {
		n++
	}
	end := o.lines[n-1].end
	o.gone = append(o.gone[:0], o.lines[:n]...)
	o.sent = 0
	if n == len(o.lines) {
		o.batch, o.buf, o.lines = o.buf, o.batch[:0], o.lines[:0]
		return true
	}
	o.batch = append(o.batch[:0], o.buf[:end]...)
	o.cut(0, n, end)
	return true
}

// cut removes the lines [from, to), which take n bytes. Callers hold mu.
func (o *outbox) cut(from, to, n int) {
	begin := 0
	if from > 0 {
		begin = o.lines[from-1].end
	}
	o.buf = slices.Delete(o.buf, begin, begin+n)
	o.lines = slices.Delete(o.lines, from, to)
	for i := from; i < len(o.lines); i++ {
		o.lines[i].end -= n
	}
}

// withdraw takes a line back that has not gone to the pipe.
func (o *outbox) withdraw(seq int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	i, found := slices.BinarySearchFunc(o.lines, seq, func(l outLine, seq int64) int { return int(l.seq - seq) })
	if !found || o.failed != nil {
		return false
	}
	n := o.lines[i].end
	if i > 0 {
		n -= o.lines[i-1].end
	}
	o.cut(i, i+1, n)
	return true
}

// written closes the account of a batch.
func (o *outbox) written() {
	for i := range o.gone {
		if done := o.gone[i].done; done != nil {
			done <- nil
		}
	}
	o.gone = o.gone[:0]
	if cap(o.batch) > keptLine {
		o.batch = nil
	}
	o.batch, o.sent = o.batch[:0], 0
}

// keptLine is the largest buffer kept between two writes.
const keptLine = 256 << 10

// run is the writer. It ends with stop, or with an error of the pipe; lost are then
// the plain calls that were not sent, those of which a part was first.
func (o *outbox) run() (begun, lost []int64, err error) {
	for range o.wake {
		runtime.Gosched() // others have answers to their calls, and the next ones at hand
		for {
			o.mu.Lock()
			if o.failed != nil || len(o.batch) == 0 && !o.take() {
				err := o.failed
				if o.busy = err != nil; o.busy {
					begun, lost = o.giveUp(err)
				}
				o.mu.Unlock()
				if err != nil {
					return begun, lost, err
				}
				break
			}
			o.mu.Unlock()
			n, err := o.pipe.Write(o.batch[o.sent:])
			o.sent += n
			if err != nil {
				o.mu.Lock()
				o.failed = err
				begun, lost = o.giveUp(err)
				o.mu.Unlock()
				return begun, lost, err
			}
			o.written()
		}
	}
	return nil, nil, nil
}

// giveUp tells all senders. Callers hold mu, and the place at the pipe.
func (o *outbox) giveUp(err error) (begun, lost []int64) {
	from := 0
	for _, l := range o.gone {
		switch {
		case l.done != nil:
			l.done <- err
		case l.call != 0 && from < o.sent:
			begun = append(begun, l.call)
		case l.call != 0:
			lost = append(lost, l.call)
		}
		from = l.end
	}
	for _, l := range o.lines {
		if l.done != nil {
			l.done <- err
		} else if l.call != 0 {
			lost = append(lost, l.call)
		}
	}
	o.gone, o.lines, o.buf = nil, nil, nil
	return begun, lost
}

// stop ends the writer. A write that is under way ends with its pipe.
func (o *outbox) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = fs.ErrClosed
	}
	if !o.busy {
		o.busy = true
		o.wake <- struct{}{}
	}
}
