package fleettest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports come from below 32768, where Linux begins to hand out ephemeral ones. A
// port that is to be there again after a restart must not lie above: a client
// that tries to reconnect meanwhile may be given that very port and connect to
// itself, and then nobody else can listen on it.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

var handedOut = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// freePort is a port of 127.0.0.1 that nobody listens on and that this process
// has not handed out before.
func freePort(t testing.TB) int {
	t.Helper()
	handedOut.Lock()
	defer handedOut.Unlock()
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if handedOut.ports[port] {
			continue
		}
		ln, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		if err := ln.Close(); err != nil {
			t.Fatalf("fleettest: %v", err)
		}
		handedOut.ports[port] = true
		return port
	}
	t.Fatalf("fleettest: no free port from %d to %d", firstPort, lastPort)
	return 0
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
