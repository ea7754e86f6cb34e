package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordeal/agent/mcp"
	"ordeal/agent/secret"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// The test binary is its own family of misbehaving servers: started with
// ORDEAL_FAKE it plays the one named there.
func TestMain(m *testing.M) {
	if mode := os.Getenv("ORDEAL_FAKE"); mode == "bench" {
		new(fake).bench()
		os.Exit(0)
	} else if mode == "bare" {
		new(fake).bare()
		os.Exit(0)
	} else if mode != "" {
		(&fake{mode: mode, in: bufio.NewReaderSize(os.Stdin, 1<<20)}).run()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fake is a server on stdio that does one thing wrong.
type fake struct {
	mode string
	in   *bufio.Reader
	held []rpc
}

type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Version   string            `json:"protocolVersion"`
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
		RequestID json.RawMessage   `json:"requestId"`
		Meta      map[string]any    `json:"_meta"`
		State     string            `json:"requestState"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code int `json:"code"`
	} `json:"error"`
}

// note is one line of the journal.
type note struct {
	Event  string
	Method string          `json:",omitempty"`
	ID     json.RawMessage `json:",omitempty"`
	PID    int             `json:",omitempty"`
	At     time.Time
}

func (f *fake) journal(n note) {
	n.At = time.Now()
	line, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	file, err := os.OpenFile(os.Getenv("ORDEAL_JOURNAL"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	file.Write(append(line, '\n'))
}

func (f *fake) say(format string, args ...any) { fmt.Fprintf(os.Stdout, format, args...) }

func (f *fake) result(id json.RawMessage, result string) {
	f.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}

func text(s string) string {
	quoted, _ := json.Marshal(s)
	return `{"content":[{"type":"text","text":` + string(quoted) + `}]}`
}

func (f *fake) run() {
	f.journal(note{Event: "start", PID: os.Getpid()})
	defer f.journal(note{Event: "end"})
	f.begin()
	for {
		line, err := f.in.ReadBytes('\n')
		if len(line) > 0 {
			var m rpc
			if err := json.Unmarshal(line, &m); err != nil {
				f.journal(note{Event: "garbage"})
				continue
			}
			f.journal(note{Event: "got", Method: m.Method, ID: m.ID})
			f.handle(m)
		}
		if err != nil {
			f.atEOF()
			return
		}
	}
}

// begin is what happens before the first line is read.
func (f *fake) begin() {
	switch f.mode {
	case "banner":
		f.say("{ starting up\n\x1b[32mready\x1b[0m to serve\n\n")
		f.say(`{"level":"info","msg":"json log"}` + "\n")
	case "exit3":
		fmt.Fprintln(os.Stderr, "missing API_KEY=sk-fake-123")
		time.Sleep(50 * time.Millisecond)
		os.Exit(3)
	case "exit0":
		os.Exit(0)
	case "signal":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "slowstart":
		for i := range 4 {
			fmt.Fprintf(os.Stderr, "downloading %d%%\n", 25*i)
			time.Sleep(200 * time.Millisecond)
		}
	case "modernlate", "duallate":
		time.Sleep(500 * time.Millisecond)
	case "neverstart":
		fmt.Fprintln(os.Stderr, "waiting for the database")
		time.Sleep(time.Minute)
	case "stubborn", "lateexit":
		signal.Ignore(syscall.SIGTERM)
	case "grandchild":
		child := exec.Command("sleep", "60")
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
}

func (f *fake) atEOF() {
	switch f.mode {
	case "stubborn":
		time.Sleep(time.Minute)
	case "lateexit":
		time.Sleep(300 * time.Millisecond)
	case "termexit":
		time.Sleep(time.Minute)
	}
}

func (f *fake) handle(m rpc) {
	switch m.Method {
	case "initialize":
		f.initialize(m)
	case "ping":
		f.result(m.ID, "{}")
	case "tools/list":
		f.result(m.ID, `{"tools":[{"name":"echo","description":"says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"annotations":{"readOnlyHint":true}}]}`)
	case "tools/call":
		f.call(m)
	case "":
		f.answered(m)
	default:
		f.other(m)
	}
}

func (f *fake) other(m rpc) {
	switch {
	case m.ID == nil:
	case f.mode == "silent" || f.mode == "silentslow":
	case f.mode == "dieondiscover" && m.Method == "server/discover":
		fmt.Fprintln(os.Stderr, "Error: expected initialize request")
		os.Exit(1)
	case (f.mode == "modernlate" || f.mode == "duallate" || f.mode == "dual") && m.Method == "server/discover":
		f.result(m.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}`)
	default:
		f.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`+"\n", m.ID)
	}
}

func (f *fake) initialize(m rpc) {
	version := m.Params.Version
	switch f.mode {
	case "oldversion":
		version = "2024-11-05"
	case "futureversion":
		version = "9999-01-01"
	case "modernlate":
		f.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`+"\n", m.ID)
		return
	case "noversion":
		f.result(m.ID, `{"capabilities":{},"serverInfo":{"name":"fake","version":"1"}}`)
		return
	case "silentslow":
		time.Sleep(300 * time.Millisecond)
	}
	f.result(m.ID, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"},"instructions":"be kind"}`, version))
}

func (f *fake) call(m rpc) {
	id, said := m.ID, m.Params.Arguments["text"]
	switch f.mode {
	case "banner":
		f.say("handling a call\n")
		f.result(id, text(said))
	case "glued":
		if said == "glued" {
			f.say("debug: ")
		}
		f.result(id, text(said))
	case "stderrflood":
		line := bytes.Repeat([]byte("x"), 1<<20)
		if said == "binary" {
			line = bytes.Repeat([]byte{0, 0xff, 0xfe, 'y'}, 1<<18)
		}
		for range 5 {
			os.Stderr.Write(line)
		}
		f.result(id, text(said))
	case "big":
		var n int
		fmt.Sscan(said, &n)
		f.result(id, text(strings.Repeat("a", n)))
	case "endless":
		for {
			if _, err := os.Stdout.Write(bytes.Repeat([]byte("a"), 1<<16)); err != nil {
				return
			}
		}
	case "idtype":
		switch said {
		case "string":
			f.result(json.RawMessage(`"`+string(id)+`"`), text(said))
		case "float":
			f.result(json.RawMessage(string(id)+`.0`), text(said))
		case "null":
			f.result(json.RawMessage("null"), text(said))
		case "missing":
			f.say(`{"jsonrpc":"2.0","result":%s}`+"\n", text(said))
		case "nullerror":
			f.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}` + "\n")
		default:
			f.result(id, text(said))
		}
	case "reorder":
		f.held = append(f.held, m)
		if len(f.held) < 8 {
			return
		}
		slices.Reverse(f.held)
		for _, h := range f.held {
			f.result(h.ID, text(h.Params.Arguments["text"]))
		}
		f.result(f.held[0].ID, text("again"))
		f.result(json.RawMessage("99999"), text("never asked"))
		f.held = nil
	case "interleave":
		f.held = append(f.held, m)
		if len(f.held) < 3 {
			return
		}
		a, b := f.held[0].ID, f.held[1].ID
		f.say(`{"jsonrpc":"2.0","id":%s,"res{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n"+`ult":%s}`+"\n", a, b, text("b"), text("a"))
		f.result(f.held[2].ID, text("whole"))
	case "batch":
		f.held = append(f.held, m)
		if len(f.held) == 2 {
			f.say(`[{"jsonrpc":"2.0","id":%s,"result":%s},{"jsonrpc":"2.0","id":%s,"result":%s}]`+"\n",
				f.held[1].ID, text(f.held[1].Params.Arguments["text"]), f.held[0].ID, text(f.held[0].Params.Arguments["text"]))
		}
	case "asks":
		ask := json.RawMessage(`"srv-1"`)
		switch said {
		case "sameid":
			ask = id
		case "nowait":
			ask = json.RawMessage(`"srv-0"`)
		}
		method := said
		if said == "sameid" || said == "nowait" {
			method = "ping"
		}
		f.say(`{"jsonrpc":"2.0","id":%s,"method":%q}`+"\n", ask, method)
		if said == "nowait" {
			f.result(id, text("did not wait"))
			return
		}
		f.held = append(f.held, m)
	case "progress":
		f.progress(m, said)
	case "crash":
		f.held = append(f.held, m)
		if len(f.held) == 3 {
			fmt.Fprintln(os.Stderr, "panic: out of luck")
			os.Exit(1)
		}
	case "cutreply":
		f.say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"typ`+"\n", id)
	case "hang":
		f.held = append(f.held, m)
	case "canned":
		f.say("%s\n", strings.ReplaceAll(said, "$ID", string(id)))
	case "toolerror":
		f.toolError(id, said)
	case "env":
		fmt.Fprintln(os.Stderr, "env:", os.Environ())
		f.say(`{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":"key is %s"}]}}`+"\n", id, os.Getenv("SECRET_KEY"))
	case "stuck":
		time.Sleep(time.Minute)
	case "getenv":
		f.result(id, text(os.Getenv(said)))
	case "noread":
		f.result(id, text(said))
		if len(said) == 1 && len(f.held) == 0 {
			f.held = append(f.held, m) // once
			time.Sleep(time.Second)
		}
	default:
		f.result(id, text(said))
	}
}

func (f *fake) answered(m rpc) {
	if f.mode != "asks" || len(f.held) == 0 || string(m.ID) == `"srv-0"` {
		return
	}
	got := "result " + string(m.Result)
	if m.Error != nil {
		got = fmt.Sprint("error ", m.Error.Code)
	}
	f.result(f.held[0].ID, text(got))
	f.held = nil
}

func (f *fake) progress(m rpc, variant string) {
	token := m.Params.Meta["progressToken"]
	send := func(token any, value int) {
		raw, _ := json.Marshal(token)
		f.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`+"\n", raw, value)
	}
	switch variant {
	case "fine":
		for i := 1; i <= 3; i++ {
			send(token, i)
			time.Sleep(20 * time.Millisecond)
		}
	case "othertype":
		send(fmt.Sprint(token), 1)
	case "backwards":
		send(token, 3)
		send(token, 2)
	case "burst":
		var all bytes.Buffer
		for i := range 10_000 {
			fmt.Fprintf(&all, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%v,"progress":%d}}`+"\n", token, i+1)
		}
		os.Stdout.Write(all.Bytes())
	case "forever":
		go func() {
			for i := 0; ; i++ {
				send(token, i)
				time.Sleep(20 * time.Millisecond)
			}
		}()
		return
	}
	f.result(m.ID, text(variant))
	if variant == "afterwards" {
		send(token, 9)
	}
}

func (f *fake) toolError(id json.RawMessage, variant string) {
	switch variant {
	case "-32602", "-32603":
		f.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"text is required"}}`+"\n", id, variant)
	case "isError":
		f.result(id, `{"isError":true,"content":[{"type":"text","text":"text is required"}]}`)
	case "silent":
	case "exit":
		os.Exit(7)
	default:
		f.result(id, text("error: text is required"))
	}
}

// server is a started fake and its journal.
type server struct {
	*mcp.Client
	journal string
}

// fakeConfig is the configuration of a fake on stdio.
func fakeConfig(t testing.TB, mode string) (mcp.Config, string) {
	t.Helper()
	journal := filepath.Join(t.TempDir(), "journal")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { noneLeft(t, journal) })
	return mcp.Config{
		Transport: wire.Stdio, Command: []string{self}, Redactor: new(secret.Redactor),
		Env: []wire.EnvVar{{Name: "ORDEAL_FAKE", Value: mode}, {Name: "ORDEAL_JOURNAL", Value: journal},
			{Name: "GORACE", Value: "atexit_sleep_ms=0"}}, // or else the detector sleeps at the end
		Timeout: 5 * time.Second, StartTimeout: 10 * time.Second, StopGrace: time.Second, ProbeTimeout: 200 * time.Millisecond,
	}, journal
}

func start(t testing.TB, mode string, change ...func(*mcp.Config)) *server {
	t.Helper()
	cfg, journal := fakeConfig(t, mode)
	for _, f := range change {
		f(&cfg)
	}
	c, err := mcp.Dial(context.Background(), cfg)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return &server{c, journal}
}

func (s *server) session(t testing.TB) *mcp.Session {
	t.Helper()
	session, err := s.NewSession(t.Context())
	if err != nil {
		t.Fatalf("session: %v", err)
	}
	return session
}

func say(t testing.TB, s *mcp.Session, text string) metrics.Exchange {
	t.Helper()
	args, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	return s.Call(context.Background(), "echo", args, true)
}

func notes(t testing.TB, journal string) []note {
	t.Helper()
	raw, err := os.ReadFile(journal)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var all []note
	dec := json.NewDecoder(bytes.NewReader(raw))
	for {
		var n note
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("journal: %v", err)
		}
		all = append(all, n)
	}
}

// eventually waits for a count in the journal, which another process writes.
func eventually(t testing.TB, journal, event, method string, want int) {
	t.Helper()
	got := 0
	for range 200 {
		if got = count(notes(t, journal), event, method); got == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d × %s %s in the journal, want %d", got, event, method, want)
}

func count(all []note, event, method string) int {
	n := 0
	for _, e := range all {
		if e.Event == event && (method == "" || e.Method == method) {
			n++
		}
	}
	return n
}

// noneLeft checks that every process the journal names is gone, with its group.
func noneLeft(t testing.TB, journal string) {
	t.Helper()
	for _, n := range notes(t, journal) {
		if n.Event == "start" && mcp.GroupAlive(n.PID) {
			t.Errorf("process group %d is still there", n.PID)
			syscall.Kill(-n.PID, syscall.SIGKILL)
		}
	}
}

func wantOutcome(t testing.TB, what string, x metrics.Exchange, want metrics.Outcome, message string) {
	t.Helper()
	if x.Outcome != want || !strings.Contains(x.Message, message) {
		t.Errorf("%s: %v %q, want %v with %q", what, x.Outcome, x.Message, want, message)
	}
}

func wantNote(t testing.TB, what string, all []string, part string) {
	t.Helper()
	if !slices.ContainsFunc(all, func(n string) bool { return strings.Contains(n, part) }) {
		t.Errorf("%s: no note with %q in %q", what, part, all)
	}
}
