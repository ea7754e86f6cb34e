package llmtest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ordeal/agent/llm/llmtest"

	"github.com/google/go-cmp/cmp"
)

// ask sends one request straight to the handler.
func ask(s *llmtest.Server, method, path, body string, header ...string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestRefusals(t *testing.T) {
	const openai, anthropic = "/v1/chat/completions", "/v1/messages"
	const good = `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`
	rows := []struct {
		name, method, path, body string
		header                   []string
		status                   int
		want                     string
	}{
		{"OK", "POST", openai, good, nil, 200, `"content":"ok."`},
		{"OK", "POST", anthropic, good, []string{"anthropic-version", "2023-06-01"}, 200, `"text":"ok."`},
		{"NoVersion", "POST", anthropic, good, nil, 400, "anthropic-version"},
		{"NoMaxTokens", "POST", anthropic, strings.Replace(good, `"max_tokens":5,`, "", 1), []string{"anthropic-version", "x"}, 400, "max_tokens"},
		{"NoModel", "POST", openai, `{"messages":[{"role":"user","content":"x"}]}`, nil, 400, `"param":"model"`},
		{"NoMessages", "POST", openai, `{"model":"m","messages":[]}`, nil, 400, `"param":"messages"`},
		{"NotJSON", "POST", openai, `model=m`, nil, 400, "not a JSON object"},
		{"GET", "GET", openai, "", nil, 405, "method"},
		{"WrongPath", "POST", "/v2/chat/completions", good, nil, 404, "Invalid URL"},
		{"Models", "GET", "/v1/models", "", nil, 200, "test-model"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			status, body := ask(llmtest.NewHandler(llmtest.Always(llmtest.Answer{})), row.method, row.path, row.body, row.header...)
			if status != row.status || !strings.Contains(body, row.want) {
				t.Errorf("got %d %s, want %d with %q", status, body, row.status, row.want)
			}
		})
	}
}

func TestPlansAndJournal(t *testing.T) {
	s := llmtest.NewHandler(llmtest.Sequence(llmtest.Answer{Status: 429}, llmtest.Answer{}))
	var statuses []int
	for i := range 3 {
		status, _ := ask(s, "POST", "/v1/chat/completions?x=1", fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"prompt %d"}]}]}`, i))
		statuses = append(statuses, status)
	}
	if diff := cmp.Diff([]int{429, 200, 200}, statuses); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	journal := s.Journal()
	last := journal[2]
	if last.N != 2 || last.Prompt != "prompt 2" || last.Path != "/v1/chat/completions?x=1" || !last.Stream || len(last.Tokens) != 2 {
		t.Errorf("entry %+v", last)
	}
	if last.Tokens[0].Before.Before(last.Headers) || last.Done.Before(last.Tokens[1].After) || last.Headers.Before(last.Received) {
		t.Errorf("moments out of order: %+v", last)
	}
	if s.Forget(); len(s.Journal()) != 0 {
		t.Error("the journal did not forget")
	}
}

// Answers repeat to the byte.
func TestAnswersRepeat(t *testing.T) {
	answer := llmtest.Answer{Text: llmtest.Tokens(9), Thinking: []string{"a"}, Tools: []llmtest.ToolCall{{ID: "1", Name: "f", Arguments: `{"a":"ü🌍"}`, Parts: 7}}}
	for _, path := range []string{"/v1/chat/completions", "/v1/messages"} {
		for _, stream := range []bool{false, true} {
			body := fmt.Sprintf(`{"model":"m","max_tokens":50,"stream":%v,"messages":[{"role":"user","content":"x"}]}`, stream)
			var seen [2]string
			for i := range seen {
				_, seen[i] = ask(llmtest.NewHandler(llmtest.Always(answer)), "POST", path, body, "anthropic-version", "2023-06-01")
			}
			if seen[0] != seen[1] || seen[0] == "" {
				t.Errorf("%s stream=%v: %q and %q", path, stream, seen[0], seen[1])
			}
		}
	}
}

func TestLateStartHoldsTheHeaders(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := llmtest.New(t, llmtest.Always(llmtest.Answer{TTFT: 30 * time.Millisecond, LateStart: late}))
		resp, err := http.Post(s.URL+"/v1/chat/completions", "application/json", bytes.NewReader([]byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`)))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		e := s.Journal()[0]
		if waited := e.Headers.Sub(e.Received) >= 30*time.Millisecond; waited != late {
			t.Errorf("late %v: headers after %v", late, e.Headers.Sub(e.Received))
		}
		if first := e.Tokens[0].Before.Sub(e.Received); first < 30*time.Millisecond {
			t.Errorf("late %v: first token after %v", late, first)
		}
	}
}

func TestTokenLimitOfTheRequest(t *testing.T) {
	s := llmtest.NewHandler(llmtest.Always(llmtest.Answer{Text: llmtest.Tokens(10)}))
	_, body := ask(s, "POST", "/v1/chat/completions", `{"model":"m","max_tokens":2,"messages":[{"role":"user","content":"x"}]}`)
	if !strings.Contains(body, `"content":"alpha beta "`) || !strings.Contains(body, `"finish_reason":"length"`) || !strings.Contains(body, `"completion_tokens":2`) {
		t.Errorf("got %s", body)
	}
}
