package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordeal/cmd/internal/cli"
	"ordeal/controller/result"
	"ordeal/testdata/peers"
)

// scanJSON runs the command in this process and returns its document.
func scanJSON(t *testing.T, args ...string) (*result.Document, error) {
	t.Helper()
	var out, talk bytes.Buffer
	err := run(t.Context(), append(args, "--json"), Streams{Out: &out, Err: &talk})
	var doc result.Document
	if jerr := json.Unmarshal(out.Bytes(), &doc); jerr != nil {
		t.Fatalf("ordeal %s: %v\nno document: %v\n%s", strings.Join(args, " "), err, jerr, talk.String())
	}
	return &doc, err
}

// quick keeps scans of real servers short: injected timeouts are really waited
// for.
var quick = []string{"--requests", "30", "--concurrency", "4", "--timeout", "2s", "--contract-cases", "40"}

func TestScanRealServers(t *testing.T) {
	dir := t.TempDir()
	repo := gitRepo(t)
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
	}{
		{"Everything", []string{line(peers.Node(t, "server-everything")), "--tool", "echo", "--tool-args", `{"message": "hi"}`}},
		{"Filesystem", []string{line(peers.Node(t, "server-filesystem"), dir), "--tool", "read_text_file", "--tool-args", `{"path": "` + dir + `/a.txt"}`}},
		{"Memory", []string{line(peers.Node(t, "server-memory")), "--env", "MEMORY_FILE_PATH=" + filepath.Join(dir, "m.json"), "--tool", "read_graph"}},
		{"Git", []string{line(peers.Python(t, "mcp-server-git")), "--tool", "git_log", "--tool-args", `{"repo_path": "` + repo + `"}`}},
		{"Time", []string{line(peers.Python(t, "mcp-server-time")), "--tool", "get_current_time", "--tool-args", `{"timezone": "UTC"}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := scanJSON(t, append(append([]string{"scan"}, tt.args...), quick...)...)
			if err != nil {
				t.Fatal(err)
			}
			checkScan(t, doc)
		})
	}
}

// checkScan asserts what holds of every scan of a well-behaved server.
func checkScan(t *testing.T, doc *result.Document) {
	t.Helper()
	if doc.Run.Partial || len(doc.Probes) != 6 {
		t.Errorf("partial %v with %d probes, want a whole scan of 6", doc.Run.Partial, len(doc.Probes))
	}
	if doc.Target.Name == "" || doc.Target.ProtocolVersion == "" {
		t.Errorf("target %+v lacks a name or a protocol version", doc.Target)
	}
	latency := doc.Probes[0]
	if n, ok := latency.Metrics["successes"].Number(); !ok || n != 30 {
		t.Errorf("latency successes %v, want 30; findings %v", latency.Metrics["successes"].Value, latency.Findings)
	}
	for _, c := range doc.Checks {
		if c.Key == "error_rate_max" && c.Status == result.Fail {
			t.Errorf("a healthy server fails %s: %s", c.Key, c.Reason)
		}
	}
}

func TestMemoryOracle(t *testing.T) {
	server := line(peers.Node(t, "server-memory"))
	args := append([]string{"scan", server, "--env", "MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "m.json"),
		"--tool", "create_entities", "--tool-args", `{"entities": [{"name": "{op_id}", "entityType": "probe", "observations": ["{op_id}"]}]}`}, quick...)

	_, err := scanJSONErr(t, args...)
	if err == nil || !strings.Contains(err.Error(), "--allow-mutating") {
		t.Errorf("without the second key: %v, want a refusal that names --allow-mutating", err)
	}

	doc, err := scanJSON(t, append(args, "--allow-mutating", "--verify-tool", "read_graph", "--verify-count", "entities", "--contract-cases", "5")...)
	if err != nil {
		t.Fatal(err)
	}
	m := doc.Probes[5].Metrics["duplicate_mutations"]
	if n, ok := m.Number(); !ok || n != 0 {
		t.Errorf("duplicate_mutations %v (caveats %v), want a measured 0: server-memory ignores entities it has", m.Value, m.Caveats)
	}
}

// scanJSONErr is scanJSON for runs that are to be refused.
func scanJSONErr(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, talk bytes.Buffer
	err := run(t.Context(), append(args, "--json"), Streams{Out: &out, Err: &talk})
	return out.String(), err
}

func TestScanEverythingOverHTTPAndSSE(t *testing.T) {
	for _, mode := range []struct{ arg, scheme, path string }{{"streamableHttp", "http", "/mcp"}, {"sse", "sse+http", "/sse"}} {
		t.Run(mode.arg, func(t *testing.T) {
			port := serve(t, append(peers.Node(t, "server-everything"), mode.arg))
			doc, err := scanJSON(t, append([]string{"scan", mode.scheme + "://127.0.0.1:" + port + mode.path, "--tool", "echo", "--tool-args", `{"message": "hi"}`}, quick...)...)
			if err != nil {
				t.Fatal(err)
			}
			checkScan(t, doc)
		})
	}
}

// TestInterruptEachPhase: Ctrl-C writes what was measured, leaves no process
// behind and exits 130.
func TestInterruptEachPhase(t *testing.T) {
	server := append(peers.Node(t, "server-everything"), "stdio")
	for _, phase := range []struct {
		name  string
		args  []string
		after time.Duration
	}{
		{"Latency", []string{"--requests", "100000"}, 2500 * time.Millisecond},
		{"Ramp", []string{"--probes", "concurrency", "--requests", "1000000"}, 2500 * time.Millisecond},
		{"Contract", []string{"--probes", "contract", "--contract-cases", "100000", "--contract-tools", "12"}, 1500 * time.Millisecond},
		{"Chaos", []string{"--probes", "fault", "--timeout", "20s"}, 2500 * time.Millisecond},
	} {
		t.Run(phase.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.json")
			args := append([]string{"scan", line(server), "--tool", "echo", "--tool-args", `{"message": "hi"}`, "--json-out", out}, phase.args...)
			cmd := exec.Command(self(t), args...)
			cmd.Env = append(os.Environ(), "ORDEAL_TEST_MAIN=1")
			var talk bytes.Buffer
			cmd.Stderr = &talk
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(phase.after)
			children := childrenOf(t, cmd.Process.Pid)
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != cli.Interrupted {
				t.Fatalf("ended with %v, want exit %d\n%s", err, cli.Interrupted, talk.String())
			}
			raw, err := os.ReadFile(out)
			if err != nil {
				t.Fatalf("no partial result: %v\n%s", err, talk.String())
			}
			var doc result.Document
			if err := json.Unmarshal(raw, &doc); err != nil || !doc.Run.Partial || doc.Run.Calls == 0 {
				t.Errorf("partial %v, calls %d, err %v; want a partial result with calls", doc.Run.Partial, doc.Run.Calls, err)
			}
			if len(children) == 0 {
				t.Error("the server's process was never seen: the check below would prove nothing")
			}
			for _, pid := range children {
				if alive(pid) {
					t.Errorf("server process %d outlived the scan", pid)
				}
			}
		})
	}
}

// serve starts a server of npm on a free port and waits until it listens.
func serve(t *testing.T, argv []string) (port string) {
	t.Helper()
	port = strconv.Itoa(freePort(t))
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			return port
		}
	}
	t.Fatalf("%v does not listen on port %s", argv, port)
	return ""
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// line joins words to a target that the splitter takes apart again.
func line(argv []string, more ...string) string {
	var quoted []string
	for _, w := range append(argv, more...) {
		quoted = append(quoted, "'"+w+"'")
	}
	return strings.Join(quoted, " ")
}

func gitRepo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// childrenOf lists the descendants of a process.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	var out []int
	dirs, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{}
	for _, path := range dirs {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parents[child], _ = strconv.Atoi(fields[1])
	}
	for child := range parents {
		for p := parents[child]; p > 1; p = parents[p] {
			if p == pid {
				out = append(out, child)
				break
			}
		}
	}
	return out
}

func alive(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(raw), ") Z ")
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestInterruptedSurvey: before the target has answered there is nothing to
// measure, and still a document and no process left.
func TestInterruptedSurvey(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.json")
	cmd := exec.Command(self(t), "scan", "sleep 3600", "--json-out", out)
	cmd.Env = append(os.Environ(), "ORDEAL_TEST_MAIN=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var children []int
	for deadline := time.Now().Add(10 * time.Second); len(children) == 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		children = childrenOf(t, cmd.Process.Pid)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != cli.Interrupted {
		t.Fatalf("ended with %v, want exit %d", err, cli.Interrupted)
	}
	var doc result.Document
	if err := json.Unmarshal([]byte(readFile(t, out)), &doc); err != nil || !doc.Run.Partial || doc.Verdict.Passed != nil {
		t.Errorf("partial %v, passed %v, err %v; want a partial document without a verdict", doc.Run.Partial, doc.Verdict.Passed, err)
	}
	if len(children) == 0 || alive(children[0]) {
		t.Errorf("server processes %v: seen and gone is what should be", children)
	}
}
