package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"ordeal/agent/llm/llmtest"
	"ordeal/controller/result"
)

// number is a metric's value; the test fails where it was withheld.
func number(t *testing.T, doc *result.Document, probe, metric string) float64 {
	t.Helper()
	for _, p := range doc.Probes {
		if p.Name != probe {
			continue
		}
		v, ok := p.Metrics[metric].Number()
		if !ok {
			t.Errorf("%s.%s was withheld: %v", probe, metric, p.Metrics[metric].Caveats)
		}
		return v
	}
	t.Errorf("no probe %s", probe)
	return 0
}

func TestScanLLM(t *testing.T) {
	for _, wire := range []struct{ target, path string }{{"openai:m-1", "/v1"}, {"anthropic:m-1", ""}} {
		t.Run(wire.target, func(t *testing.T) {
			srv := llmtest.New(t, llmtest.Always(llmtest.Answer{Text: llmtest.Tokens(10), TTFT: 20 * time.Millisecond, Gap: 2 * time.Millisecond}))
			srv.RequireKey("sk-planted-secret")
			t.Setenv("PLANTED", "sk-planted-secret")
			doc, err := scanJSON(t, "scan", wire.target, "--base-url", srv.URL+wire.path, "--api-key", "${env:PLANTED}", "--timeout", "1s",
				"--price-in", "3", "--price-out", "15")
			if err != nil {
				t.Fatal(err)
			}
			if n := number(t, doc, "latency", "successes"); n != 5 {
				t.Errorf("%v successes, want the 5 requests of an LLM target", n)
			}
			if ttft := number(t, doc, "latency", "ttft_p50_s"); ttft < 0.02 || ttft > 0.5 {
				t.Errorf("ttft_p50_s %v, want a little over 0.02", ttft)
			}
			if cost := number(t, doc, "cost", "cost_per_request"); cost <= 0 {
				t.Errorf("cost_per_request %v", cost)
			}
			if got := len(srv.Journal()); int64(got) != doc.Run.Calls {
				t.Errorf("the server saw %d requests, the document says %d", got, doc.Run.Calls)
			}
		})
	}
}

// A quota is reported as a quota, and the load slows down.
func TestQuotaIsNotUnreliability(t *testing.T) {
	refused := llmtest.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After-Ms": {"100"}}}
	srv := llmtest.New(t, func(r llmtest.Request) llmtest.Answer {
		if r.N > 10 && r.N%4 == 0 {
			return refused
		}
		return llmtest.Answer{Text: llmtest.Tokens(2)}
	})
	doc, err := scanJSON(t, "scan", "openai:m-1", "--base-url", srv.URL+"/v1", "--requests", "40", "--probes", "latency", "--price-in", "1", "--price-out", "1")
	if err != nil {
		t.Fatal(err)
	}
	if rate := number(t, doc, "latency", "error_rate"); rate != 0 {
		t.Errorf("error_rate %v, want 0: refusals for quota are not unreliability", rate)
	}
	if raw := number(t, doc, "latency", "error_rate_raw"); raw < 0.1 {
		t.Errorf("error_rate_raw %v, want the refusals in it", raw)
	}
	if n := number(t, doc, "latency", "rate_limited"); n == 0 {
		t.Error("no refusal was counted")
	}
	found := false
	for _, f := range doc.Probes[0].Findings {
		found = found || strings.Contains(f.ID, "quota")
	}
	if !found {
		t.Errorf("no finding names the quota: %+v", doc.Probes[0].Findings)
	}
}
