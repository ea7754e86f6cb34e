package target

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

func mustOpenHTTP(t *testing.T, d wire.Target) Target {
	t.Helper()
	d.Kind, d.Timeout = wire.HTTP, 10*time.Second
	target, err := Open(context.Background(), d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close(context.Background()) })
	return target
}

// A survey asks nothing: nobody knows what a request does.
func TestHTTPSurveySendsNothing(t *testing.T) {
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer s.Close()
	target := mustOpenHTTP(t, wire.Target{Method: "POST", Endpoint: s.URL + "/x?key=s3cret"})
	got, err := target.Survey(context.Background())
	want := &wire.Survey{Name: "http-post:" + strings.TrimPrefix(s.URL, "http://")}
	if diff := cmp.Diff(want, got); err != nil || diff != "" || requests.Load() != 0 || target.Virtual() {
		t.Errorf("%v, %d requests (-want +got):\n%s", err, requests.Load(), diff)
	}
	if alive, restarted, exit := target.Alive(context.Background()); !alive || restarted || exit != "" || requests.Load() != 1 {
		t.Errorf("alive %v, restarted %v, exit %q, %d requests", alive, restarted, exit, requests.Load())
	}
}

func TestHTTPCall(t *testing.T) {
	t.Setenv("ORDEAL_TEST_TOKEN", "t0ken-0123456789")
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, strings.TrimSpace(strings.Join([]string{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), string(body)}, " ")))
		io.WriteString(w, `{"token":"`+r.Header.Get("Authorization")+`"}`)
	}))
	defer s.Close()
	rows := []struct {
		name string
		t    wire.Target
		args string
		want string
	}{
		{"Get", wire.Target{Method: "GET", Endpoint: s.URL + "/a?k=${env:ORDEAL_TEST_TOKEN}"}, "", "GET /a?k=t0ken-0123456789"},
		{"GetParameters", wire.Target{Method: "GET", Endpoint: s.URL + "/a"}, `{"q":"x y"}`, "GET /a?q=x+y"},
		{"Post", wire.Target{Method: "POST", Endpoint: s.URL, Body: `{"a":1}`, Headers: []wire.Header{{Name: "Authorization", Value: "Bearer $ORDEAL_TEST_TOKEN"}}},
			"", `POST / Bearer t0ken-0123456789 {"a":1}`},
		{"PostArgs", wire.Target{Method: "POST", Endpoint: s.URL, Body: `{"a":1}`}, `{"a":2}`, `POST /  {"a":2}`},
		{"PostText", wire.Target{Method: "POST", Endpoint: s.URL, Body: "hi"}, `"you \"there\""`, `POST /  you "there"`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			seen = nil
			session, err := mustOpenHTTP(t, r.t).Session(context.Background(), 3)
			if err != nil {
				t.Fatal(err)
			}
			x := session.Call(context.Background(), Call{Args: []byte(r.args), Keep: true})
			if diff := cmp.Diff([]string{r.want}, seen); diff != "" || x.Outcome != metrics.OK || x.Status != 200 || x.BytesIn == 0 {
				t.Errorf("%v %s (-want +got):\n%s", x.Outcome, x.Message, diff)
			}
			if x.Structured == nil || strings.Contains(x.Text, "t0ken") {
				t.Errorf("kept %q, structured %q", x.Text, x.Structured)
			}
			if x := session.Call(context.Background(), Call{Args: []byte(r.args)}); x.Text != "" {
				t.Errorf("kept unasked: %q", x.Text)
			}
		})
	}
}

func TestHTTPMistakes(t *testing.T) {
	for want, d := range map[string]wire.Target{
		"NO_SUCH_VARIABLE":     {Method: "GET", Endpoint: "http://h/?k=${env:NO_SUCH_VARIABLE}"},
		"header X-A":           {Method: "GET", Endpoint: "http://h/", Headers: []wire.Header{{Name: "X-A", Value: "$NO_SUCH_HEADER"}}},
		"method":               {Endpoint: "http://h/"},
		"not http://host":      {Method: "GET", Endpoint: "h/x"},
		"check the host, port": {Method: "GET", Endpoint: "http://p4ss:w@[h"},
	} {
		d.Kind = wire.HTTP
		if _, err := Open(context.Background(), d); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
