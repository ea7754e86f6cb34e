package web_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/secret"
	"ordeal/agent/web"
	"ordeal/metrics"
)

// serve starts a server, and returns a client of it that change may alter.
func serve(t testing.TB, h http.HandlerFunc, change func(*web.Config)) *web.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return dial(t, web.Config{Method: "GET", URL: s.URL + "/path?q=1"}, change)
}

func dial(t testing.TB, cfg web.Config, change func(*web.Config)) *web.Client {
	t.Helper()
	if change != nil {
		change(&cfg)
	}
	c, err := web.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// reply answers with a status, headers in pairs, and a body.
func reply(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Add(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// raw writes bytes of its own making and closes, with a reset where it says so.
func raw(answer string, reset bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		io.WriteString(conn, answer)
		if reset {
			conn.(*net.TCPConn).SetLinger(0)
		}
		conn.Close()
	}
}

const sse, ndjson = "text/event-stream", "application/x-ndjson; charset=utf-8"

func TestOutcomes(t *testing.T) {
	rows := []struct {
		name    string
		answer  http.HandlerFunc
		want    metrics.Outcome
		exec    metrics.Tri
		cut     bool
		message string
		events  int
	}{
		{name: "200", answer: reply(200, "hello"), want: metrics.OK, exec: metrics.Yes},
		{name: "200Empty", answer: reply(200, ""), want: metrics.OK, exec: metrics.Yes},
		{name: "201", answer: reply(201, "{}"), want: metrics.OK, exec: metrics.Yes},
		{name: "204", answer: reply(204, ""), want: metrics.OK, exec: metrics.Yes},
		{name: "304", answer: reply(304, ""), want: metrics.InvalidResponse, exec: metrics.No, message: "HTTP 304"},
		{name: "300", answer: reply(300, "", "Location", "http://elsewhere.test/?key=x"), want: metrics.InvalidResponse, exec: metrics.No, message: "redirects to elsewhere.test, which"},
		{name: "400", answer: reply(400, "bad\nfield"), want: metrics.ProtocolError, exec: metrics.No, message: "HTTP 400 Bad Request: bad field"},
		{name: "401", answer: reply(401, ""), want: metrics.AuthRequired, exec: metrics.No, message: "HTTP 401"},
		{name: "403", answer: reply(403, ""), want: metrics.AuthRequired, exec: metrics.No},
		{name: "404", answer: reply(404, ""), want: metrics.ProtocolError, exec: metrics.No},
		{name: "408", answer: reply(408, ""), want: metrics.Timeout},
		{name: "429", answer: reply(429, "slow down"), want: metrics.RateLimited, exec: metrics.No, message: "HTTP 429 Too Many Requests: slow down"},
		{name: "500", answer: reply(500, "boom"), want: metrics.ServerError, message: "HTTP 500 Internal Server Error: boom"},
		{name: "503", answer: reply(503, ""), want: metrics.ServerError},
		{name: "503RetryAfter", answer: reply(503, "", "Retry-After", "2"), want: metrics.RateLimited},
		{name: "504", answer: reply(504, ""), want: metrics.ServerError},
		{name: "ShortBody", answer: raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhell", false), want: metrics.Connection, cut: true, message: "in the middle of the answer"},
		{name: "ShortChunk", answer: raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", false), want: metrics.Connection, cut: true, message: "in the middle of the answer"},
		{name: "NoLastChunk", answer: raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", false), want: metrics.Connection, cut: true, message: "in the middle of the answer"},
		{name: "NoAnswer", answer: raw("", false), want: metrics.Connection, message: "EOF"},
		{name: "Reset", answer: raw("", true), want: metrics.Connection, message: "reset"},
		{name: "NotHTTP", answer: raw("SSH-2.0-x\r\n", false), want: metrics.Connection, message: "malformed HTTP"},
		{name: "TooLarge", answer: reply(200, strings.Repeat("x", 2001)), want: metrics.InvalidResponse, message: "larger than 2000 bytes"},
		{name: "JustAllowed", answer: reply(200, strings.Repeat("x", 2000)), want: metrics.OK, exec: metrics.Yes},

		{name: "Events", answer: reply(200, ": hi\n\ndata: a\n\nevent: x\ndata: b\n\nid: 3\ndata:\n\ndata: c\n\n", "Content-Type", sse), want: metrics.OK, exec: metrics.Yes, events: 3},
		{name: "ErrorEvent", answer: reply(200, "data: a\n\nevent: error\ndata: out of memory\n\n", "Content-Type", sse), want: metrics.ServerError, message: "after 1 events: out of memory", events: 2},
		{name: "NoEvent", answer: reply(200, ": ping\n\n", "Content-Type", sse), want: metrics.InvalidResponse, cut: true, message: "after 0 events"},
		{name: "HalfEvent", answer: reply(200, "data: a\n\ndata: b", "Content-Type", sse), want: metrics.InvalidResponse, cut: true, message: "middle of an event after 1 events", events: 1},
		{name: "EventsCut", answer: raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n", false), want: metrics.Connection, cut: true, message: "in the middle", events: 1},
		{name: "EventTooLarge", answer: reply(200, "data: "+strings.Repeat("x", 3000)+"\n\n", "Content-Type", sse), want: metrics.InvalidResponse, message: "larger than 2000 bytes"},
		{name: "Lines", answer: reply(200, "{\"a\":1}\n\n{\"a\":2}\r\n{\"a\":3}", "Content-Type", ndjson), want: metrics.OK, exec: metrics.Yes, events: 3},
		{name: "NoLine", answer: reply(200, "\n\n", "Content-Type", ndjson), want: metrics.InvalidResponse, cut: true, message: "after 0 events"},
		{name: "LinesCut", answer: raw("HTTP/1.1 200 OK\r\nContent-Type: application/jsonl\r\nContent-Length: 99\r\n\r\n{}\n{", false), want: metrics.Connection, cut: true, message: "in the middle", events: 1},
		{name: "Compressed", answer: reply(200, "\x1f\x8b", "Content-Type", sse, "Content-Encoding", "gzip"), want: metrics.OK, exec: metrics.Yes},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got := serve(t, r.answer, func(cfg *web.Config) { cfg.MaxAnswer = 2000 }).Do(context.Background(), nil, false)
			if got.Outcome != r.want || got.Executed != r.exec || got.Truncated != r.cut || !strings.Contains(got.Message, r.message) {
				t.Errorf("got %v executed %v truncated %v %q, want %v %v %v %q", got.Outcome, got.Executed, got.Truncated, got.Message, r.want, r.exec, r.cut, r.message)
			}
			events := len(got.Gaps)
			if got.TTFT > 0 {
				events++
			}
			if events != r.events {
				t.Errorf("%d events, want %d", events, r.events)
			}
			if (got.Outcome == metrics.OK) != (got.Message == "") || got.Delivered != (got.Status != 0) || got.Latency <= 0 || got.FirstByte > got.Latency || got.TTFT > got.Latency {
				t.Errorf("incoherent: %+v", got)
			}
		})
	}
}

// Every form of Retry-After, good and bad.
func TestRetryAfter(t *testing.T) {
	now := time.Now().UTC()
	date := now.Format(http.TimeFormat)
	in2s := now.Add(2 * time.Second)
	rows := []struct {
		name    string
		headers []string
		wait    time.Duration
		notes   int
	}{
		{"Seconds", []string{"Retry-After", "2"}, 2 * time.Second, 0},
		{"IMFDate", []string{"Date", date, "Retry-After", in2s.Format(http.TimeFormat)}, 2 * time.Second, 0},
		{"RFC850Date", []string{"Date", date, "Retry-After", in2s.Format("Monday, 02-Jan-06 15:04:05 GMT")}, 2 * time.Second, 0},
		{"PastDate", []string{"Date", date, "Retry-After", now.Add(-time.Hour).Format(http.TimeFormat)}, 0, 1},
		{"Zero", []string{"Retry-After", "0"}, 0, 0},
		{"Decimal", []string{"Retry-After", "0.5"}, 500 * time.Millisecond, 0},
		{"Negative", []string{"Retry-After", "-1"}, 0, 1},
		{"NaN", []string{"Retry-After", "NaN"}, 0, 1},
		{"Absurd", []string{"Retry-After", "99999999"}, 24 * time.Hour, 1},
		{"Two", []string{"Retry-After", "2", "Retry-After", "7"}, 0, 1},
		{"Milliseconds", []string{"Retry-After-Ms", "700"}, 700 * time.Millisecond, 0},
		{"None", nil, 0, 0},
	}
	for _, r := range rows {
		for _, status := range []int{429, 503} {
			got := serve(t, reply(status, "", r.headers...), nil).Do(context.Background(), nil, false)
			outcome, seen := metrics.RateLimited, "http_status"
			if status == 503 && r.name == "None" {
				outcome, seen = metrics.ServerError, ""
			}
			if got.Outcome != outcome || got.Quota != seen || got.RetryAfter != r.wait || len(got.Notes) != r.notes {
				t.Errorf("%s on %d: %v, quota %q, wait %v, notes %q", r.name, status, got.Outcome, got.Quota, got.RetryAfter, got.Notes)
			}
		}
	}
	got := serve(t, reply(200, "found 429 rows", "X-RateLimit-Limit", "50", "X-RateLimit-Remaining", "49"), nil).Do(context.Background(), nil, false)
	if got.Outcome != metrics.OK || got.Quota != "header" || got.QuotaLimit != 50 {
		t.Errorf("an announced limit: %v, quota %q of %d", got.Outcome, got.Quota, got.QuotaLimit)
	}
}

// request is what the server saw.
type request struct {
	Method, Query, Type, Body, Own string
}

func TestRequests(t *testing.T) {
	rows := []struct {
		name, method, body, args string
		header                   http.Header
		want                     request
	}{
		{"Get", "GET", "", "", nil, request{"GET", "q=1", "", "", ""}},
		{"GetParameters", "GET", "", `{"b":"x y","a":1}`, nil, request{"GET", "q=1&a=1&b=x+y", "", "", ""}},
		{"PostNothing", "POST", "", "", nil, request{"POST", "q=1", "application/json", "", ""}},
		{"Template", "POST", `{"a":1}`, "", nil, request{"POST", "q=1", "application/json", `{"a":1}`, ""}},
		{"TemplateOfText", "POST", "hi", "", nil, request{"POST", "q=1", "text/plain; charset=utf-8", "hi", ""}},
		{"Args", "POST", `{"a":1}`, `{"a":2}`, nil, request{"POST", "q=1", "application/json", `{"a":2}`, ""}},
		{"StringAsJSON", "POST", "", `"a\nb"`, nil, request{"POST", "q=1", "application/json", `"a\nb"`, ""}},
		{"StringAsText", "POST", "hi", `"a\nb"`, nil, request{"POST", "q=1", "text/plain; charset=utf-8", "a\nb", ""}},
		{"OwnType", "POST", "a=1", `"a=2"`, http.Header{"content-type": {"application/x-www-form-urlencoded"}, "X-Own": {"1"}},
			request{"POST", "q=1", "application/x-www-form-urlencoded", "a=2", "1"}},
		{"OwnTypeOfJSON", "POST", "", `"x"`, http.Header{"Content-Type": {"application/problem+JSON; a=b"}},
			request{"POST", "q=1", "application/problem+JSON; a=b", `"x"`, ""}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var got request
			c := serve(t, func(_ http.ResponseWriter, in *http.Request) {
				body, _ := io.ReadAll(in.Body)
				got = request{in.Method, in.URL.RawQuery, in.Header.Get("Content-Type"), string(body), in.Header.Get("X-Own")}
			}, func(cfg *web.Config) { cfg.Method, cfg.Body, cfg.Header = r.method, r.body, r.header })
			x := c.Do(context.Background(), []byte(r.args), false)
			if diff := cmp.Diff(r.want, got); diff != "" || x.Outcome != metrics.OK || x.BytesOut != int64(len(r.want.Body)) {
				t.Errorf("%v %s, %d bytes (-want +got):\n%s", x.Outcome, x.Message, x.BytesOut, diff)
			}
		})
	}
	bad := serve(t, reply(200, ""), nil).Do(context.Background(), []byte("[1]"), false)
	if bad.Outcome != metrics.HarnessError || bad.Origin != metrics.FromGenerator || bad.Executed != metrics.No {
		t.Errorf("parameters that are none: %v of %v", bad.Outcome, bad.Origin)
	}
}

func TestKeepsTheAnswer(t *testing.T) {
	rows := []struct{ kind, body, text, structured string }{
		{"application/json", `{"id":7}`, `{"id":7}`, `{"id":7}`},
		{"text/plain", "hello", "hello", ""},
		{sse, "data: a\n\ndata: b\n\n", "a\nb", ""},
		{ndjson, "{}\n{}\n", "{}\n{}\n", ""},
	}
	for _, r := range rows {
		c := serve(t, reply(200, r.body, "Content-Type", r.kind), nil)
		got := c.Do(context.Background(), nil, true)
		if diff := cmp.Diff([]string{r.text, r.structured}, []string{got.Text, string(got.Structured)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.kind, diff)
		}
		if got := c.Do(context.Background(), nil, false); got.Text != "" || got.Structured != nil {
			t.Errorf("%s: kept unasked: %q", r.kind, got.Text)
		}
	}
}

func TestRedirects(t *testing.T) {
	var seen []string
	hop := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, r.Method+" "+r.URL.Path+" "+string(body))
		switch to := r.URL.Query().Get("to"); {
		case r.URL.Path == "/path":
			var status int
			fmt.Sscan(r.Header.Get("X-Status"), &status)
			w.Header().Set("Location", r.Header.Get("X-To"))
			w.WriteHeader(status)
		case to == "again":
			w.Header().Set("Location", "/loop?to=again")
			w.WriteHeader(307)
		}
	}
	rows := []struct {
		name, method, to string
		status           int
		want             metrics.Outcome
		seen             int
	}{
		{"Post307", "POST", "/end", 307, metrics.OK, 2},
		{"Post308", "POST", "end", 308, metrics.OK, 2},
		{"Post302", "POST", "/end", 302, metrics.InvalidResponse, 1},
		{"Get302", "GET", "/end", 302, metrics.OK, 2},
		{"Get301", "GET", "/end", 301, metrics.OK, 2},
		{"Elsewhere", "GET", "http://127.0.0.1:1/end", 302, metrics.InvalidResponse, 1},
		{"Nowhere", "GET", "", 302, metrics.InvalidResponse, 1},
		{"Loop", "GET", "/loop?to=again", 307, metrics.InvalidResponse, 4},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			seen = nil
			c := serve(t, hop, func(cfg *web.Config) {
				cfg.Method, cfg.Header = r.method, http.Header{"X-To": {r.to}, "X-Status": {fmt.Sprint(r.status)}}
				if r.method == "POST" {
					cfg.Body = "hello"
				}
			})
			got := c.Do(context.Background(), nil, false)
			if got.Outcome != r.want || len(seen) != r.seen {
				t.Fatalf("%v %q after %q", got.Outcome, got.Message, seen)
			}
			if r.want == metrics.OK && (len(got.Notes) != 1 || r.method == "POST" && seen[1] != "POST /end hello") {
				t.Errorf("notes %q, seen %q", got.Notes, seen)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	drip := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", sse)
		for tick := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-tick.C:
				io.WriteString(w, "data: x\n\n")
				http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	for name, h := range map[string]http.HandlerFunc{"hang": hang, "drip": drip} {
		c := serve(t, h, func(cfg *web.Config) { cfg.Timeout = 60 * time.Millisecond })
		if got := c.Do(context.Background(), nil, false); got.Outcome != metrics.Timeout || got.Latency < 60*time.Millisecond || got.Executed == metrics.Yes || !strings.Contains(got.Message, "60ms") {
			t.Errorf("%s: %v %q after %v", name, got.Outcome, got.Message, got.Latency)
		}
		c = serve(t, h, nil)
		ctx, stop := context.WithTimeout(context.Background(), 30*time.Millisecond)
		if got := c.Do(ctx, nil, false); got.Outcome != metrics.Timeout || !strings.Contains(got.Message, "deadline") {
			t.Errorf("%s: deadline: %v %q", name, got.Outcome, got.Message)
		}
		stop()
		if got := c.Do(ctx, nil, false); got.Outcome != metrics.Timeout && got.Outcome != metrics.Cancelled {
			t.Errorf("%s: over: %v", name, got.Outcome)
		}
		ctx, stop = context.WithCancel(context.Background())
		stop()
		if got := c.Do(ctx, nil, false); got.Outcome != metrics.Cancelled || got.Outcome.Measured() {
			t.Errorf("%s: cancelled: %v", name, got.Outcome)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	c := dial(t, web.Config{Method: "POST", URL: "http://127.0.0.1:1/"}, nil)
	got := c.Do(context.Background(), []byte("{}"), false)
	if got.Outcome != metrics.Connection || got.Executed != metrics.No || got.Delivered || !strings.Contains(got.Message, "refused") {
		t.Errorf("%v executed %v %q", got.Outcome, got.Executed, got.Message)
	}
	if c.Alive(context.Background()) {
		t.Error("alive")
	}
}

func TestAlive(t *testing.T) {
	for status, want := range map[int]bool{200: true, 404: true, 405: true, 401: true, 500: true, 502: false, 503: false, 504: false} {
		var method string
		c := serve(t, func(w http.ResponseWriter, r *http.Request) { method = r.Method; w.WriteHeader(status) }, nil)
		if got := c.Alive(context.Background()); got != want || method != "HEAD" {
			t.Errorf("%d: alive %v by %s", status, got, method)
		}
	}
}

// No secret of the target comes back in a message, whatever the server does.
func TestSecretsStayOut(t *testing.T) {
	redact := new(secret.Redactor)
	redact.Add("H3ADER-value")
	var user, pass string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, pass, _ = r.BasicAuth()
		w.WriteHeader(500)
		fmt.Fprint(w, r.URL.RawQuery, r.Header.Get("Authorization"), r.Header.Get("X-Key"))
	}))
	defer s.Close()
	c := dial(t, web.Config{Method: "GET", URL: strings.Replace(s.URL, "http://", "http://us3r:p4ssw0rd@", 1) + "/?key=S3CRET-query",
		Header: http.Header{"X-Key": {"H3ADER-value"}}, Redact: redact}, nil)
	got := c.Do(context.Background(), nil, false)
	if user != "us3r" || pass != "p4ssw0rd" {
		t.Errorf("basic auth %q %q", user, pass)
	}
	for _, leak := range []string{"S3CRET", "H3ADER", "p4ssw0rd", "dXMzcjpwNHNzdzByZA=="} {
		if strings.Contains(got.Message, leak) {
			t.Errorf("%q in the message: %s", leak, got.Message)
		}
	}
	if got.Outcome != metrics.ServerError || !strings.Contains(got.Message, "[redacted]") {
		t.Errorf("%v %q", got.Outcome, got.Message)
	}
}

func TestNewReportsEveryMistake(t *testing.T) {
	_, err := web.New(web.Config{Method: "PUT", URL: "http://h", Timeout: -1})
	if err == nil || !strings.Contains(err.Error(), "want GET or POST") || !strings.Contains(err.Error(), "negative") {
		t.Errorf("%v", err)
	}
	for _, u := range []string{"", "ftp://h", "http:///p4ss", "http://p4ss:[x"} {
		if _, err := web.New(web.Config{Method: "GET", URL: u}); err == nil || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%q: %v", u, err)
		}
	}
}

func TestUsersAtOnce(t *testing.T) {
	var mu sync.Mutex
	conns := map[string]int{}
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		conns[r.RemoteAddr]++
	}, nil)
	var users sync.WaitGroup
	for range 20 {
		users.Go(func() {
			for range 10 {
				if x := c.Do(context.Background(), nil, false); x.Outcome != metrics.OK {
					t.Errorf("%v %s", x.Outcome, x.Message)
				}
			}
		})
	}
	users.Wait()
	total := 0
	for _, n := range conns {
		total += n
	}
	if total != 200 || len(conns) > 40 { // a caller may dial while another returns one
		t.Errorf("%d requests over %d connections", total, len(conns))
	}
}
