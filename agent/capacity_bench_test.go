package agent

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"ordeal/agent/llm/llmtest"
	"ordeal/agent/probe"
	"ordeal/agent/target"
	"ordeal/agent/wire"
)

// targetVar makes the test binary a target: its memory and files are its own.
const targetVar = "ORDEAL_TEST_TARGET"

func targetMain() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", llmtest.NewHandler(slowly(20*time.Millisecond)))
	mux.HandleFunc("POST /mcp", bareMCP)
	fmt.Println(l.Addr())
	_ = http.Serve(l, mux)
	return 0
}

// bareMCP is as little of an MCP server as a client accepts.
func bareMCP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Version string `json:"protocolVersion"`
		} `json:"params"`
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	result := `{"content":[{"type":"text","text":"ok"}]}`
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", string(m.ID))
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		time.Sleep(20 * time.Millisecond)
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no %s here"}}`, m.ID, m.Method)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// otherProcess starts a target and returns its address.
func otherProcess(b *testing.B) string {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), targetVar+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var address string
	if _, err := fmt.Fscan(out, &address); err != nil {
		b.Fatal(err)
	}
	return address
}

// BenchmarkCaller is what a caller costs its agent: memory of the process and
// open files, at rest between two calls or in one. perCaller and filesPerCaller
// are these figures, rounded up.
func BenchmarkCaller(b *testing.B) {
	address := otherProcess(b)
	for _, t := range []wire.Target{
		{Kind: wire.OpenAI, Endpoint: "http://" + address + "/v1", APIKey: "k"},
		{Kind: wire.MCP, Transport: wire.StreamableHTTP, Endpoint: "http://" + address + "/mcp", URI: "http://" + address + "/mcp"},
	} {
		for _, callers := range []int{200, 1000} {
			b.Run(fmt.Sprintf("%s-%d", t.Kind, callers), func(b *testing.B) {
				t.Timeout, t.StartTimeout = 30*time.Second, 30*time.Second
				for b.Loop() {
					memory, files := costOf(b, t, callers)
					b.ReportMetric(float64(memory)/1024/float64(callers), "KiB/caller")
					b.ReportMetric(float64(files)/float64(callers), "files/caller")
				}
			})
		}
	}
}

// costOf holds callers for two seconds and returns the most that they took.
func costOf(b *testing.B, t wire.Target, callers int) (memory uint64, files int) {
	b.Helper()
	open, err := target.Open(b.Context(), t)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = open.Close(b.Context()) }()
	runtime.GC()
	before, filesBefore := inUse(), openFiles()
	ops := wire.Range{To: 1 << 40}
	u := &wire.Unit{ID: "u", Kind: wire.LoadUnit, Target: t, Ops: ops, Call: wire.CallSpec{Tools: []wire.ToolCall{{Name: "t", Args: json.RawMessage(`{}`)}}},
		Load: &wire.Load{Workers: callers, Level: callers, Stage: ops, Duration: 4 * time.Second}}
	done := make(chan *wire.Result, 1)
	go func() { done <- probe.Run(b.Context(), probe.Env{Target: open}, u, nil) }()
	for {
		select {
		case r := <-done:
			if r.Failure != nil || r.Tally.Successes() == 0 {
				b.Fatalf("%+v, %v", r.Failure, r.Tally.Errors)
			}
			return memory, files
		case <-time.After(50 * time.Millisecond):
			memory, files = max(memory, inUse()-min(before, inUse())), max(files, openFiles()-filesBefore)
		}
	}
}

// inUse is the memory of the Go runtime that is not given back: what GOMEMLIMIT
// counts.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys - m.HeapReleased
}

func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
