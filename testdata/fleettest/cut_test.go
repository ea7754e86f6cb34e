package fleettest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// echo is a server that sends back what it gets.
func echo(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				_, _ = io.Copy(conn, conn) // ends with the client
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); wg.Wait() })
	return ln.Addr().String()
}

// dial connects through the cut, and closes before the cut and the server end.
func dial(t *testing.T, c *Cut) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", c.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// say sends a line and expects it back.
func say(t *testing.T, conn net.Conn, line string) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(conn, line); err != nil {
		t.Fatal(err)
	}
	got, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || got != line+"\n" {
		t.Fatalf("echo %q, %v; want %q", got, err, line)
	}
}

// silent expects that nothing arrives for a while: no byte, no end, no reset.
func silent(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Read(make([]byte, 1))
	if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v through a cut cable", n, err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
}

func TestCutHoldsAndHealDelivers(t *testing.T) {
	c := NewCut(t, echo(t))
	conn := dial(t, c)
	say(t, conn, "whole")
	c.Cut()
	if _, err := fmt.Fprintln(conn, "held"); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	late := dial(t, c)
	if _, err := fmt.Fprintln(late, "late"); err != nil {
		t.Fatal(err)
	}
	silent(t, conn)
	silent(t, late)
	if s := c.Stats(); s.Up != 6 || s.Down != 6 || s.Open != 2 {
		t.Errorf("%+v, want 6 bytes each way and two connections", s)
	}
	c.Heal()
	rest, err := io.ReadAll(conn)
	if string(rest) != "held\n" || err != nil {
		t.Errorf("after the cut %q, %v; want what was held and then the end", rest, err)
	}
	if got, err := bufio.NewReader(late).ReadString('\n'); got != "late\n" || err != nil {
		t.Errorf("of a connection made meanwhile %q, %v", got, err)
	}
}

// TestNoLineIsLost sends numbered lines through a cable that is cut again and
// again, in the middle of writes too: they come back once each, in order.
func TestNoLineIsLost(t *testing.T) {
	const lines = 200_000
	c := NewCut(t, echo(t))
	conn := dial(t, c)
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		w := bufio.NewWriter(conn)
		for i := range lines {
			fmt.Fprintln(w, i) // Flush has its error
		}
		if err := errors.Join(w.Flush(), conn.CloseWrite()); err != nil {
			t.Error(err)
		}
	})
	in := bufio.NewScanner(conn)
	cuts, n := 0, 0
	for ; in.Scan(); n++ {
		if got, want := in.Text(), fmt.Sprint(n); got != want {
			t.Fatalf("line %q, want %q", got, want)
		}
		if n%20_000 == 5_000 {
			cuts++
			cutAndHeal(t, c)
		}
	}
	if in.Err() != nil || n != lines || cuts != 10 {
		t.Errorf("%d lines, %d cuts, %v; want %d", n, cuts, in.Err(), lines)
	}
	wg.Wait()
}

// cutAndHeal runs while bytes are under way, and looks whether they stand still.
func cutAndHeal(t *testing.T, c *Cut) {
	t.Helper()
	c.Cut()
	before := c.Stats()
	time.Sleep(5 * time.Millisecond) // in which nothing may move
	if after := c.Stats(); after != before {
		t.Errorf("moved while cut: %+v, then %+v", before, after)
	}
	c.Heal()
}

// A cut ends a write that waits for a reader which does not read, and takes it
// up again.
func TestCutInTheMiddleOfAWrite(t *testing.T) {
	c := NewCut(t, echo(t))
	conn := dial(t, c)
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	const size = 32 << 20 // more than all buffers on the way together
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := io.Copy(conn, strings.NewReader(strings.Repeat("x", size)))
		if err := errors.Join(err, conn.CloseWrite()); err != nil {
			t.Error(err)
		}
	})
	for before := int64(0); before == 0 || before != c.Stats().Down; time.Sleep(50 * time.Millisecond) {
		before = c.Stats().Down // until it stands because nobody reads
	}
	c.Cut()
	c.Heal()
	if n, err := io.Copy(io.Discard, conn); n != size || err != nil {
		t.Errorf("%d bytes, %v; want %d", n, err, size)
	}
	wg.Wait()
}

func TestDropRefusesUntilHealed(t *testing.T) {
	c := NewCut(t, echo(t))
	conn := dial(t, c)
	say(t, conn, "whole")
	c.Cut()
	c.Drop() // a cut cable can be dropped too
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read: %v, want a reset", err)
	}
	if _, err := net.Dial("tcp", c.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v, want a refusal", err)
	}
	c.Heal()
	say(t, dial(t, c), "again")
	if s := c.Stats(); s.Connections != 2 {
		t.Errorf("%+v, want two connections", s)
	}
}

// Without a server a connection is reset, at once or so soon that the dial
// itself says so.
func TestServerAway(t *testing.T) {
	c := NewCut(t, loopback(freePort(t)))
	conn, err := net.Dial("tcp", c.Addr())
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v, want a reset", err)
	}
}

func TestSlow(t *testing.T) {
	for _, tc := range []struct {
		name string
		slow func(*Cut, int)
	}{{"up", (*Cut).SlowUp}, {"down", (*Cut).SlowDown}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := NewCut(t, echo(t))
			conn := dial(t, c)
			tc.slow(c, 100_000)
			start := time.Now()
			say(t, conn, strings.Repeat("x", 50_000))
			if took := time.Since(start); took < 450*time.Millisecond || took > 5*time.Second {
				t.Errorf("50 KB at 100 KB/s took %v", took)
			}
			tc.slow(c, 0)
			start = time.Now()
			say(t, conn, strings.Repeat("y", 50_000))
			if took := time.Since(start); took > 450*time.Millisecond {
				t.Errorf("50 KB without a limit took %v", took)
			}
		})
	}
}
