package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ordeal/cmd/internal/cli"
	"ordeal/controller/result"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*want) {
		t.Errorf("%s is %v, want %v within %v %%", what, got, want, 100*tolerance)
	}
}

func level(t *testing.T, doc *result.Document) result.LoadLevel {
	t.Helper()
	if doc.Load == nil || len(doc.Load.Levels) == 0 {
		t.Fatal("the document has no load")
	}
	return doc.Load.Levels[len(doc.Load.Levels)-1]
}

// TestLoadShowsAStall: a second in which nothing is answered, of ten at 100 calls a
// second. In an open loop every arrival of that second waits; a closed loop hides
// it, and its report says which model it is.
func TestLoadShowsAStall(t *testing.T) {
	var mu sync.Mutex
	var begun time.Time
	stall := func(context.Context) {
		mu.Lock()
		if begun.IsZero() {
			begun = time.Now()
		}
		at := time.Since(begun)
		mu.Unlock()
		if at >= 4*time.Second && at < 5*time.Second {
			time.Sleep(5*time.Second - at)
		}
	}
	open, err := load(t, serveLoad(t, stall, nil).url, "--rate", "100", "--duration", "10s", "--warmup-time", "0s")
	if err != nil {
		t.Fatal(err)
	}
	lv := level(t, open)
	if n := lv.Outcomes["ok"]; n != 1000 || lv.Scheduled != 1000 || lv.Dropped != 0 {
		t.Errorf("%d of %d arrivals answered, %d dropped; want 1000 of 1000", n, lv.Scheduled, lv.Dropped)
	}
	p99, _ := lv.P99.Number()
	near(t, "p99 of the open loop", p99, 0.9, 0.05)
	if p50, _ := lv.P50.Number(); p50 > 0.02 {
		t.Errorf("p50 is %v s, want that of a call outside of the stall", p50)
	}

	begun = time.Time{}
	closed, err := load(t, serveLoad(t, stall, nil).url, "--concurrency", "4", "--duration", "7s", "--warmup-time", "0s")
	if err != nil {
		t.Fatal(err)
	}
	if p99, _ := level(t, closed).P99.Number(); p99 > 0.2 || closed.Load.Model != "closed" {
		t.Errorf("p99 of the closed loop %v s, model %s: four callers meet the stall once each", p99, closed.Load.Model)
	}
}

// TestLoadRateNotSustained is a single lock of 20 ms, asked for 100 calls a second.
func TestLoadRateNotSustained(t *testing.T) {
	doc, err := load(t, serveLoad(t, tookTurns(20*time.Millisecond), nil).url, "--rate", "100", "--duration", "8s", "--max-in-flight", "50", "--slo", "error_rate<1%")
	var exit *cli.Exit
	if !errors.As(err, &exit) || exit.Code != cli.Failed {
		t.Fatalf("error %v, want exit 1: the rate was not sustained", err)
	}
	lv := level(t, doc)
	achieved, _ := lv.Achieved.Number()
	near(t, "achieved rate", achieved, 49, 0.06)
	if lv.Sustained == nil || *lv.Sustained || !strings.Contains(strings.Join(doc.Verdict.Reasons, " "), "rate not sustained: ") || lv.Dropped == 0 {
		t.Errorf("%+v, %q: want it said", lv, doc.Verdict.Reasons)
	}
	if lv.Scheduled != lv.Sent+lv.Dropped {
		t.Errorf("%d arrivals, %d sent, %d dropped", lv.Scheduled, lv.Sent, lv.Dropped)
	}
}

// TestLoadNeverAnswered: no latency, timeouts only, and an end in time.
func TestLoadNeverAnswered(t *testing.T) {
	silent := serveLoad(t, func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Second):
		}
	}, nil)
	begun := time.Now()
	doc, err := load(t, silent.url, "--rate", "20", "--duration", "3s", "--timeout", "1s", "--warmup", "0")
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("took %v", took)
	}
	lv := level(t, doc)
	if lv.Outcomes["ok"] != 0 || lv.Outcomes["timeout"] == 0 || lv.P50.Value != nil {
		t.Errorf("%+v, want timeouts only", lv)
	}
}

// TestLoadOfATokenBucket: 200 a second of a target that takes 50: the rest is
// refused, and counted as what it is.
func TestLoadOfATokenBucket(t *testing.T) {
	b := newBucket(50, 10)
	doc, err := load(t, serveLoad(t, nil, b.gate).url, "--rate", "200", "--duration", "6s", "--slo", "error_rate<1%")
	var exit *cli.Exit
	if !errors.As(err, &exit) || exit.Code != cli.Failed {
		t.Fatalf("error %v, want exit 1", err)
	}
	lv := level(t, doc)
	achieved, _ := lv.Achieved.Number()
	near(t, "achieved rate", achieved, 50, 0.05)
	refused := float64(lv.Outcomes["rate_limited"]) / float64(lv.Sent)
	near(t, "share refused", refused, 0.75, 0.05)
}

// bucket is a token bucket that answers calls beyond it with 429.
type bucket struct {
	mu     sync.Mutex
	rate   float64
	burst  float64
	tokens float64
	last   time.Time
}

func newBucket(rate, burst float64) *bucket {
	return &bucket{rate: rate, burst: burst, tokens: burst, last: time.Now()}
}

func (b *bucket) gate(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Mcp-Session-Id") == "" {
		return false // the handshake
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.tokens = min(b.burst, b.tokens+b.rate*now.Sub(b.last).Seconds())
	b.last = now
	if b.tokens >= 1 {
		b.tokens--
		return false
	}
	w.WriteHeader(http.StatusTooManyRequests)
	return true
}

// TestLoadFindsTheKnee of a single lock and of a token bucket, within 5 %.
func TestLoadFindsTheKnee(t *testing.T) {
	for _, tt := range []struct {
		name     string
		target   func() *loadTarget
		capacity float64
	}{
		{"SingleLock", func() *loadTarget { return serveLoad(t, tookTurns(20*time.Millisecond), nil) }, 49.5}, // a sleep of 20 ms takes a little longer
		{"TokenBucket", func() *loadTarget { return serveLoad(t, nil, newBucket(50, 5).gate) }, 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := load(t, tt.target().url, "--find-knee", "--slo", "p95<300ms,error_rate<1%", "--duration", "3s", "--knee-from", "30", "--knee-precision", "0.03", "--confirmations", "1", "--max-in-flight", "100")
			if err != nil {
				for _, l := range doc.Load.Levels {
					t.Log(levelLine(&l))
				}
				t.Fatalf("%v: %q", err, doc.Verdict.Reasons)
			}
			k := doc.Load.Knee
			if k == nil || k.Rate == nil {
				t.Fatalf("no knee: %+v", k)
			}
			near(t, "knee", *k.Rate, tt.capacity, 0.05)
			if k.Met != 1 || k.Hi == nil || *k.Hi < *k.Rate {
				t.Errorf("%+v: want it confirmed, with an upper end", k)
			}
		})
	}
}

// TestLoadEndsItsSessions: one session for each caller, and as many deletes as
// opens, also after an interrupt.
func TestLoadEndsItsSessions(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		lt := serveLoad(t, nil, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		if interrupted {
			time.AfterFunc(2*time.Second, func() { cancel(cli.ErrInterrupted) })
		}
		var out, talk bytes.Buffer
		err := run(ctx, []string{"load", lt.url, "--tool", "search", "--tool-args", "{}", "--concurrency", "16", "--duration", "4s", "--json"}, Streams{Out: &out, Err: &talk})
		cancel(nil)
		if code := cli.Code(err); interrupted && code != cli.Interrupted || !interrupted && err != nil {
			t.Errorf("interrupted %v: %v\n%s", interrupted, err, talk.String())
		}
		var doc result.Document
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		opened, deleted, calls := lt.sessions()
		if opened < 16 || opened > 18 || deleted != opened {
			t.Errorf("interrupted %v: %d sessions opened for 16 callers, %d deleted", interrupted, opened, deleted)
		}
		if doc.Run.Partial != interrupted || calls < 100 {
			t.Errorf("interrupted %v: partial %v, %d calls", interrupted, doc.Run.Partial, calls)
		}
	}
}

// TestLoadOfLargeAnswers: five in a hundred answers are 20 MB.
func TestLoadOfLargeAnswers(t *testing.T) {
	var mu sync.Mutex
	n := 0
	large := strings.Repeat("x", 20<<20)
	gate := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Mcp-Session-Id") == "" {
			return false
		}
		mu.Lock()
		n++
		big := n%20 == 0
		mu.Unlock()
		if !big {
			return false
		}
		var call struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.NewDecoder(r.Body).Decode(&call) != nil || call.Method != "tools/call" {
			w.WriteHeader(http.StatusAccepted)
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(call.ID) + `,"result":{"content":[{"type":"text","text":"` + large + `"}]}}`))
		return true
	}
	// Whether this process keeps up with itself does not matter here.
	doc, err := scanJSON(t, "load", serveLoad(t, nil, gate).url, "--tool", "search", "--tool-args", "{}", "--concurrency", "4", "--requests", "200", "--timeout", "60s")
	if err != nil {
		t.Fatal(err)
	}
	if lv := level(t, doc); lv.Outcomes["ok"] < 190 || len(lv.Outcomes) > 1 {
		t.Errorf("outcomes %v, want all ok", lv.Outcomes)
	}
}

// TestLoadRampEnds: up and down again, within its duration and one timeout.
func TestLoadRampEnds(t *testing.T) {
	begun := time.Now()
	doc, err := load(t, serveLoad(t, func(context.Context) { time.Sleep(30 * time.Millisecond) }, nil).url, "--stages", "2s:20,2s:=20,2s:0", "--timeout", "2s")
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %v, want 6 s and an end", took)
	}
	most := int64(0)
	for _, p := range doc.Load.Periods {
		most = max(most, p.Callers)
	}
	if most != 20 {
		t.Errorf("at most %d callers at work, want 20", most)
	}
}
