package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordeal/metrics"
)

// comparable leaves out what differs between two calls of the same answer: times,
// and the id where a message quotes it.
func comparableTo(x metrics.Exchange, id string) metrics.Exchange {
	x.Latency, x.FirstByte, x.ClientTime = 0, 0, 0
	x.Message = strings.ReplaceAll(x.Message, id, "$ID")
	var notes []string
	for _, n := range x.Notes {
		if strings.HasPrefix(n, "lost session opened anew in ") {
			continue // of the call before
		}
		notes = append(notes, strings.ReplaceAll(n, id, "$ID"))
	}
	x.Notes = notes
	return x
}

// Every canned answer, cut at every byte, means the same on the fast way and on the
// thorough one.
func TestFastIsThorough(t *testing.T) {
	all := answers()
	calls, plain := 0, 0
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			p := play(t)
			p.now.Store(&a)
			var slow, quick slicer
			call := func(s *Session, cut *slicer, at int) metrics.Exchange {
				cut.cut(at)
				calls++
				s.losses.Store(0)
				x := s.Call(t.Context(), "echo", json.RawMessage(`{"a":1}`), false)
				return comparableTo(x, *p.id.Load())
			}
			_, thorough := dialPlayer(t, p, &slow, true)
			_, fast := dialPlayer(t, p, &quick, false)
			want := call(thorough, &slow, 0)
			if want.Outcome == metrics.OK && len(want.Notes) == 0 {
				plain++
			}
			step := max(1, len(a.raw)/400) // every byte but of the longest
			for at := 0; at <= len(a.raw); at += step {
				if diff := cmp.Diff(want, call(fast, &quick, at)); diff != "" {
					t.Fatalf("cut at %d (-thorough +fast):\n%s", at, diff)
				}
			}
			for at := 1; at <= len(a.raw); at += max(1, len(a.raw)/20) {
				if diff := cmp.Diff(want, call(thorough, &slow, at)); diff != "" {
					t.Fatalf("thorough, cut at %d (-whole +cut):\n%s", at, diff)
				}
			}
		})
	}
	t.Logf("%d canned answers of %d bodies, %d of them plain successes, %d calls", len(all), len(bodies), plain, calls)
}

// What the fast judge recognises, and what it leaves to the thorough one although
// that calls it good.
func TestClassify(t *testing.T) {
	const id = 1234567
	for _, b := range bodies {
		if b.status != "" || strings.HasPrefix(b.header, eventsType) {
			continue
		}
		data := []byte(strings.ReplaceAll(b.body, "$ID", fmt.Sprint(id)))
		got, ok := classify(data, false)
		good := strings.HasPrefix(b.name, "good") || b.name == "429 rows"
		if good && (!ok || got != id) {
			t.Errorf("%s is not recognised", b.name)
		}
		if ok {
			thoroughlyGood(t, data, got)
		}
	}
	if _, ok := classify([]byte(strings.ReplaceAll(goodReply, "$ID", "1")), true); ok {
		t.Error("a result without resultType is a finding in the stateless revision")
	}
	if _, ok := classify([]byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}`), true); !ok {
		t.Error("a complete result of the stateless revision is not recognised")
	}
}

// thoroughlyGood fails unless the thorough judge calls a reply good without a
// finding.
func thoroughlyGood(t *testing.T, data []byte, id int64) {
	t.Helper()
	msg, err := parseMessage(data)
	if err != nil || msg.method != nil || msg.fit(id) != idSame {
		t.Fatalf("fast judge: good, with id %d; thorough: %v, %v: %q", id, err, msg.fit(id), data)
	}
	c := &Client{cfg: Config{}.withDefaults()}
	c.setEra(LatestLegacy)
	var x metrics.Exchange
	c.judge(&msg, &x, true, false)
	want := metrics.Exchange{Outcome: metrics.OK, Delivered: true, Executed: metrics.Yes}
	if diff := cmp.Diff(want, x); diff != "" {
		t.Fatalf("fast judge: good; thorough (-good +is):\n%s\n%q", diff, data)
	}
}

// FuzzClassify: what the fast judge calls good is good for the thorough one.
func FuzzClassify(f *testing.F) {
	for _, b := range bodies {
		f.Add([]byte(strings.ReplaceAll(b.body, "$ID", "12")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if id, ok := classify(data, false); ok {
			thoroughlyGood(t, data, id)
		}
	})
}

// FuzzScan: the scanner takes what encoding/json takes, and nothing else.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+3,"\u00e9\n",null,true,false,{}]}`, `"`, `01`, `-`, `[,]`, `{"a" 1}`, "\"\x1f\"", `1e`, `tru`, "\"12345678\\\"90\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		end := scanValue(data, skipSpace(data, 0), 0)
		got := end >= 0 && skipSpace(data, end) == len(data)
		if want := json.Valid(data); got != want && (got || strings.Count(string(data), "[")+strings.Count(string(data), "{") < maxScanDepth) {
			t.Errorf("scanner %v, encoding/json %v: %q", got, want, data)
		}
	})
}
