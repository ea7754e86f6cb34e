package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ordeal/agent/probe"
	"ordeal/testdata/fleettest"
)

// callerHeader tells which agent has made a call: each agent of a world finds a
// file of that name, with its own name in it, where it was started.
const (
	callerHeader = "X-Caller"
	callerFile   = "caller"
)

// target is a real MCP server that knows who called it when, for which
// operation.
type target struct {
	url string

	mu    sync.Mutex
	calls []arrival
}

type arrival struct {
	at        time.Time
	caller    string
	operation string
}

func newTarget(t *testing.T, latency time.Duration) *target {
	t.Helper()
	server := fleettest.MCPServer(t, fleettest.MCPOptions{Latency: latency})
	tg := &target{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tg.note(r)
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	tg.url = h.URL + "/mcp"
	return tg
}

// note keeps a tools/call and leaves the request as it was.
func (tg *target) note(r *http.Request) {
	now := time.Now()
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req struct {
		Method string
		Params struct{ Arguments struct{ Message string } }
	}
	if err != nil || json.Unmarshal(body, &req) != nil || req.Method != "tools/call" {
		return
	}
	tg.mu.Lock()
	defer tg.mu.Unlock()
	tg.calls = append(tg.calls, arrival{now, r.Header.Get(callerHeader), req.Params.Arguments.Message})
}

// args are those of a scan of the target in which every operation can be told
// from the others.
func (tg *target) args(more ...string) []string {
	return append([]string{tg.url, "--tool", "echo", "--tool-args", `{"message": "{op_id}"}`, "--warmup", "0", "--timeout", "5s",
		"--header", callerHeader + ": ${file:" + callerFile + "}"}, more...)
}

// seen are the arrivals so far, in order.
func (tg *target) seen() []arrival {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	return append([]arrival{}, tg.calls...)
}

// last is when the latest call arrived.
func (tg *target) last() time.Time {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	if len(tg.calls) == 0 {
		return time.Time{}
	}
	return tg.calls[len(tg.calls)-1].at
}

// times is how often each operation arrived.
func (tg *target) times() map[string]int {
	n := map[string]int{}
	for _, c := range tg.seen() {
		n[c.operation]++
	}
	return n
}

// operations are the ids of operations [from, to) of the tool echo under the
// default seed.
func operations(from, to int) []string {
	ids := make([]string, 0, to-from)
	for op := from; op < to; op++ {
		ids = append(ids, probe.OpID("1337", "echo", uint64(op)))
	}
	return ids
}

// introduce lets an agent find its own name.
func introduce(t *testing.T, p *fleettest.Proc, name string) {
	t.Helper()
	// Its name alone would be taken out of every text as if it were a secret.
	if err := os.WriteFile(filepath.Join(p.Dir(), callerFile), []byte("caller-"+name), 0o600); err != nil {
		t.Fatal(err)
	}
}
