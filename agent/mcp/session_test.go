package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"ordeal/agent/mcp"
	"ordeal/metrics"
)

func TestSessionsAreOpenedAndEnded(t *testing.T) {
	f := serve(t, nil)
	s := dialWeb(t, f)
	var all []*mcp.Session
	for range 10 {
		all = append(all, s.session(t))
	}
	var wg sync.WaitGroup
	for _, session := range all {
		wg.Go(func() { wantOutcome(t, "call", say(t, session, "x"), metrics.OK, "") })
	}
	wg.Wait()
	if n := len(f.seen("POST", "initialize")); n != 10 {
		t.Errorf("%d sessions opened, want 10", n)
	}
	used := map[string]bool{}
	for _, n := range f.seen("POST", "tools/call") {
		used[n.Session] = true
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s.Close(ended)
	if left := len(f.sessions); left != 0 || len(used) != 10 || len(f.seen("DELETE", "")) != 10 {
		t.Errorf("%d sessions left, %d used, %d ended", left, len(used), len(f.seen("DELETE", "")))
	}
}

func TestHangingDelete(t *testing.T) {
	f := serve(t, nil)
	f.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			<-r.Context().Done()
			return true
		}
		return false
	}
	s := dialWeb(t, f)
	for range 8 {
		s.session(t)
	}
	if r := s.Close(context.Background()); r.Took > 2*time.Second {
		t.Errorf("close took %v", r.Took)
	}
}

func TestLostSession(t *testing.T) {
	var f *webFake
	forgotten := sync.OnceFunc(func() { f.mu.Lock(); clear(f.sessions); f.mu.Unlock() })
	calls := 0
	f = serve(t, nil)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		id := r.Header.Get("Mcp-Session-Id")
		f.mu.Lock()
		calls++
		known := id == "" || f.sessions[id]
		enough := calls > 10
		f.mu.Unlock()
		if enough {
			forgotten()
		}
		if !known {
			w.WriteHeader(404)
		}
		return !known
	}
	s := dialWeb(t, f)
	session := s.session(t)
	var lost, ok int
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 8 {
		wg.Go(func() {
			for range 10 {
				x := say(t, session, "x")
				mu.Lock()
				switch x.Outcome {
				case metrics.OK:
					ok++
				case metrics.SessionLost:
					lost++
				default:
					t.Errorf("%v %s", x.Outcome, x.Message)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if lost == 0 || ok+lost != 80 || len(f.seen("POST", "initialize")) != 2 || s.Reopened() != 1 {
		t.Errorf("%d lost, %d ok, %d initializes, %d reopened", lost, ok, len(f.seen("POST", "initialize")), s.Reopened())
	}
	if n := len(f.seen("POST", "tools/call")); n != 80 {
		t.Errorf("%d requests for 80 calls", n)
	}
}

func TestSessionsLostAtFirstUse(t *testing.T) {
	f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": answerWith(404, "", "")})
	session := dialWeb(t, f).session(t)
	for i := range 8 {
		x := say(t, session, "x")
		wantOutcome(t, fmt.Sprint(i), x, metrics.SessionLost, "")
		if i > 2 {
			wantOutcome(t, fmt.Sprint(i), x, metrics.SessionLost, "3 sessions in a row")
		}
	}
	if n := len(f.seen("POST", "initialize")); n != 3 {
		t.Errorf("%d initializes", n)
	}
}
