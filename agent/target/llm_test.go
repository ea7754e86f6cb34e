package target

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ordeal/agent/llm/llmtest"
	"ordeal/agent/wire"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

// llmAt describes the server as a target of a kind.
func llmAt(s *llmtest.Server, kind wire.TargetKind) wire.Target {
	t := wire.Target{Kind: kind, Endpoint: s.URL, Model: "test-model", Timeout: 20 * time.Second}
	if kind == wire.OpenAI {
		t.Endpoint += "/v1"
	}
	return t
}

func mustOpenLLM(t *testing.T, d wire.Target) Target {
	t.Helper()
	target, err := openLLM(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close(context.Background()) })
	return target
}

func callLLM(t *testing.T, target Target, c Call) metrics.Exchange {
	t.Helper()
	session, err := target.Session(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return session.Call(context.Background(), c)
}

var llmKinds = []wire.TargetKind{wire.OpenAI, wire.Anthropic}

func TestLLMCall(t *testing.T) {
	for _, kind := range llmKinds {
		t.Run(string(kind), func(t *testing.T) {
			s := llmtest.New(t, llmtest.Always(llmtest.Answer{Text: []string{"a", "b", "c"}, Input: 9}))
			target := mustOpenLLM(t, llmAt(s, kind))
			got := callLLM(t, target, Call{Op: 4, Tool: Chat, Keep: true})
			if got.Outcome != metrics.OK || got.Text != "abc" || !got.Usage || got.TokensIn != 9 || got.TokensOut != 3 || got.TTFT <= 0 || len(got.Gaps) != 2 {
				t.Errorf("got %+v", got)
			}
			if x := callLLM(t, target, Call{Op: 5}); x.Text != "" || x.Outcome != metrics.OK {
				t.Errorf("text kept unasked: %+v", x)
			}
			survey, err := target.Survey(context.Background())
			want := &wire.Survey{Name: string(kind) + ":test-model", Version: "test-model", ReportsUsage: true}
			if diff := cmp.Diff(want, survey); err != nil || diff != "" || target.Virtual() {
				t.Errorf("survey %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A failure of the endpoint is an exchange, and one request.
func TestLLMFailuresAreExchanges(t *testing.T) {
	rows := []struct {
		name   string
		answer llmtest.Answer
		want   metrics.Outcome
	}{
		{"RateLimited", llmtest.Answer{Status: 429}, metrics.RateLimited},
		{"ServerError", llmtest.Answer{Status: 500}, metrics.ServerError},
		{"Cut", llmtest.Answer{Fault: llmtest.CleanCut, After: 1}, metrics.InvalidResponse},
		{"Reset", llmtest.Answer{Fault: llmtest.NoReply}, metrics.Connection},
		{"Timeout", llmtest.Answer{Fault: llmtest.Hang}, metrics.Timeout},
	}
	for _, row := range rows {
		for _, kind := range llmKinds {
			t.Run(row.name+"/"+string(kind), func(t *testing.T) {
				s := llmtest.New(t, llmtest.Always(row.answer))
				d := llmAt(s, kind)
				if row.want == metrics.Timeout {
					d.Timeout = 60 * time.Millisecond
				}
				if got := callLLM(t, mustOpenLLM(t, d), Call{}); got.Outcome != row.want || got.Message == "" {
					t.Errorf("got %v %q, want %v", got.Outcome, got.Message, row.want)
				}
				if n := len(s.Journal()); n != 1 {
					t.Errorf("%d requests for one call", n)
				}
			})
		}
	}
}

func TestLLMKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("sk-from-file-0001\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MY_KEY", "sk-from-mine-0002")
	rows := []struct{ name, reference, variable, want string }{
		{"FromFile", "${file:" + file + "}", "sk-other", "sk-from-file-0001"},
		{"FromReference", "${env:MY_KEY}", "sk-other", "sk-from-mine-0002"},
		{"FromDefaultVariable", "", "sk-default-0003", "sk-default-0003"},
	}
	for _, row := range rows {
		for _, kind := range llmKinds {
			t.Run(row.name+"/"+string(kind), func(t *testing.T) {
				t.Setenv(keyVariables[kind], row.variable)
				s := llmtest.New(t, llmtest.Always(llmtest.Answer{Status: 500, Error: &llmtest.APIError{Type: "server_error", Message: "your key is " + row.want}}))
				s.RequireKey(row.want)
				d := llmAt(s, kind)
				d.APIKey = row.reference
				got := callLLM(t, mustOpenLLM(t, d), Call{})
				if got.Status != 500 || strings.Contains(got.Message, row.want) || !strings.Contains(got.Message, "[redacted]") {
					t.Errorf("got %d %q", got.Status, got.Message)
				}
			})
		}
	}
}

func TestLLMKeyIsNeededForTheProviderOnly(t *testing.T) {
	for _, kind := range llmKinds {
		t.Setenv(keyVariables[kind], "")
		if _, err := openLLM(wire.Target{Kind: kind}); err == nil || !strings.Contains(err.Error(), keyVariables[kind]) {
			t.Errorf("%s without key: %v", kind, err)
		}
		if _, err := openLLM(wire.Target{Kind: kind, Headers: []wire.Header{{Name: "authorization", Value: "Bearer x"}}}); err != nil {
			t.Errorf("%s with a header of its own: %v", kind, err)
		}
		if _, err := openLLM(wire.Target{Kind: kind, Endpoint: "http://127.0.0.1:1"}); err != nil {
			t.Errorf("%s on a base URL: %v", kind, err)
		}
	}
	_, err := openLLM(wire.Target{Kind: wire.OpenAI, Endpoint: "http://127.0.0.1:1", APIKey: "${env:NO_SUCH_KEY}", Headers: []wire.Header{{Name: "X-A", Value: "${env:NO_SUCH_HEADER}"}}})
	if err == nil || !strings.Contains(err.Error(), "NO_SUCH_KEY") || !strings.Contains(err.Error(), "header X-A") {
		t.Errorf("unresolved references: %v", err)
	}
}

func TestLLMPromptsByOperation(t *testing.T) {
	rows := []struct {
		name, prompt string
		want         []string
	}{
		{"Default", "", []string{"Reply with one word: ready", "Reply with one word: ready"}},
		{"One", "[not JSON", []string{"[not JSON", "[not JSON"}},
		{"Several", `["first","second"]`, []string{"first", "second"}},
		{"EmptyList", `[]`, []string{"[]", "[]"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Always(llmtest.Answer{}))
			d := llmAt(s, wire.OpenAI)
			d.Prompt = row.prompt
			target := mustOpenLLM(t, d)
			var got []string
			for op := range uint64(2) {
				callLLM(t, target, Call{Op: op})
				got = append(got, s.Journal()[op].Prompt)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLLMAlive(t *testing.T) {
	s := llmtest.New(t, llmtest.Always(llmtest.Answer{}))
	for _, kind := range llmKinds {
		if alive, restarted, exit := mustOpenLLM(t, llmAt(s, kind)).Alive(context.Background()); !alive || restarted || exit != "" {
			t.Errorf("%s: alive %v, restarted %v, exit %q", kind, alive, restarted, exit)
		}
		dead := mustOpenLLM(t, wire.Target{Kind: kind, Endpoint: "http://127.0.0.1:1"})
		if alive, _, _ := dead.Alive(context.Background()); alive {
			t.Errorf("%s: a closed port is alive", kind)
		}
	}
	if n := len(s.Journal()); n != 0 {
		t.Errorf("%d model calls to see whether it lives", n)
	}
}

func TestLLMUsersAtOnce(t *testing.T) {
	s := llmtest.New(t, llmtest.Always(llmtest.Answer{}))
	target := mustOpenLLM(t, llmAt(s, wire.Anthropic))
	var users sync.WaitGroup
	for user := range 20 {
		users.Go(func() {
			session, err := target.Session(context.Background(), user)
			if err != nil {
				t.Error(err)
				return
			}
			for op := range uint64(5) {
				if x := session.Call(context.Background(), Call{Op: op}); x.Outcome != metrics.OK {
					t.Errorf("user %d: %v %s", user, x.Outcome, x.Message)
				}
			}
		})
	}
	users.Wait()
	if n := len(s.Journal()); n != 100 {
		t.Errorf("%d requests for 100 calls", n)
	}
}
