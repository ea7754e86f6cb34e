package mcp_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/mcp"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

var (
	callID = regexp.MustCompile(`"id":\d+`)
	anyID  = regexp.MustCompile(`\b(request had|id) \d+`)
)

// The fast way and the thorough one say the same to the server, byte for byte but
// for the id.
func TestFastRequests(t *testing.T) {
	for _, protocol := range []string{mcp.LatestLegacy, mcp.Stateless} {
		for _, tool := range []string{"echo", `t"o\ol`, "narzędzie"} {
			f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"server/discover": answerWith(200, "Content-Type: application/json",
				`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}`)})
			for _, thorough := range []bool{false, true} {
				s := dialWeb(t, f, func(c *mcp.Config) {
					c.Protocol, c.Headers = protocol, []wire.Header{{Name: "x-team", Value: "a"}, {Name: "X-Team", Value: "b "}, {Name: "host", Value: "else.test"}}
				})
				if thorough {
					s.Thoroughly()
				}
				session := s.session(t)
				for _, args := range []string{"", `{}`, `{"text":"x"}`, `{"_meta":{}}`, "{\n}", "not JSON"} {
					session.Call(t.Context(), tool, json.RawMessage(args), false)
				}
			}
			sent := f.seen("POST", "")
			var calls []webNote
			for _, n := range sent {
				if strings.Contains(n.Body, `"tools/call"`) {
					n.At, n.Session, n.Body = time.Time{}, "", callID.ReplaceAllString(n.Body, `"id":0`)
					n.Header.Del("Mcp-Session-Id")
					calls = append(calls, n)
				}
			}
			if len(calls) != 12 {
				t.Fatalf("%s %s: %d calls", protocol, tool, len(calls))
			}
			for i := range 6 {
				fast, thorough := calls[i], calls[i+6]
				thorough.Header.Set("Content-Length", fast.Header.Get("Content-Length")) // ids differ in length
				if diff := cmp.Diff(thorough, fast); diff != "" {
					t.Errorf("%s %s, call %d (-thorough +fast):\n%s", protocol, tool, i, diff)
				}
			}
		}
	}
}

// Every canned answer that fits a line means the same on both ways over stdio.
func TestFastIsThoroughOnStdio(t *testing.T) {
	quick := func(c *mcp.Config) { c.Timeout, c.Protocol = 500*time.Millisecond, mcp.LatestLegacy }
	fast, thorough := start(t, "canned", quick), start(t, "canned", quick)
	thorough.Thoroughly()
	a, b := fast.session(t), thorough.session(t)
	lines := mcp.CannedLines()
	for name, line := range lines {
		args, err := json.Marshal(map[string]string{"text": line})
		if err != nil {
			t.Fatal(err)
		}
		said := func(s *mcp.Session) metrics.Exchange {
			x := s.Call(t.Context(), "echo", args, false)
			x.Latency, x.ClientTime, x.Message = 0, 0, anyID.ReplaceAllString(callID.ReplaceAllString(x.Message, `"id":0`), "$1 0")
			for i, n := range x.Notes {
				x.Notes[i] = callID.ReplaceAllString(n, `"id":0`)
			}
			return x
		}
		var want metrics.Exchange
		var other sync.WaitGroup
		other.Go(func() { want = said(b) })
		got := said(a)
		other.Wait()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-thorough +fast):\n%s", name, diff)
		}
	}
	t.Logf("%d canned lines", len(lines))
}

// Calls over TLS, by HTTP/1.1 and by HTTP/2.
func TestFastOverTLS(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		f := &webFake{sessions: map[string]bool{}}
		protos := sync.Map{}
		web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			protos.Store(r.Proto, true)
			f.ServeHTTP(w, r)
		}))
		web.EnableHTTP2 = h2
		if !h2 {
			web.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
		}
		web.StartTLS()
		cfg := webConfig(web.URL + "/mcp")
		cfg.Insecure = true
		c, err := mcp.Dial(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if x := s.Call(t.Context(), "echo", benchArgs, false); x.Outcome != metrics.OK {
				t.Errorf("h2 %v: %v %s", h2, x.Outcome, x.Message)
			}
		}
		c.Close(context.Background())
		web.Close()
		want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[h2]
		protos.Range(func(p, _ any) bool {
			if p != want {
				t.Errorf("%v, want %s", p, want)
			}
			return true
		})
	}
}

// A server that closes each connection as it idles, and answers one call in twenty
// with 20 MB: no call fails, the closes are counted, and sessions end one by one.
func TestFastOnADifficultServer(t *testing.T) {
	f := serve(t, nil)
	f.Config.SetKeepAlivesEnabled(true)
	large := strings.Repeat("x", 20<<20)
	n := 0
	f.hooks = map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": func(w http.ResponseWriter, r *http.Request, m rpc) {
		body := "small"
		if n++; n%20 == 0 {
			body = large
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, text(body)))
	}}
	s := dialWeb(t, f, func(c *mcp.Config) { c.Timeout = 20 * time.Second })
	session := s.session(t)
	for i := range 60 {
		x := session.Call(t.Context(), "echo", benchArgs, false)
		if x.Outcome != metrics.OK || (i%20 == 19) != (x.BytesIn > 20<<20) {
			t.Fatalf("call %d: %v %s, %d bytes", i, x.Outcome, x.Message, x.BytesIn)
		}
		if i%10 == 9 {
			f.Config.SetKeepAlivesEnabled(false) // closes what idles
			f.Config.SetKeepAlivesEnabled(true)
			time.Sleep(5 * time.Millisecond)
		}
	}
	if s.Recycled() == 0 {
		t.Error("no connection was recycled")
	}
	if s.Opened() != 1 || s.Reopened() != 0 {
		t.Errorf("%d opened, %d reopened", s.Opened(), s.Reopened())
	}
	other := s.session(t)
	other.Close(t.Context())
	if n := len(f.seen("DELETE", "")); n != 1 || s.Opened() != 2 {
		t.Errorf("%d sessions ended, %d opened", n, s.Opened())
	}
}
