package schedule

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestKindOrderIsFixed(t *testing.T) {
	want := []string{"none", "timeout", "rate_limit", "server_error", "malformed", "connection_refused", "response_lost"}
	var got []string
	for k := None; k < kindCount; k++ {
		got = append(got, k.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

func TestKindFacts(t *testing.T) {
	ms, s := time.Millisecond, time.Second
	for kind, want := range map[Kind]Facts{
		None:              {ReachesTarget: true, Delivered: true},
		Timeout:           {Latency: 30 * s},
		RateLimit:         {Delivered: true, Latency: 20 * ms, RetryAfter: s, Status: 429},
		ServerError:       {Delivered: true, Latency: 20 * ms, Status: 500},
		Malformed:         {ReachesTarget: true, Delivered: true},
		ConnectionRefused: {Latency: 20 * ms},
		ResponseLost:      {ReachesTarget: true, OptIn: true},
		kindCount:         {},
	} {
		if diff := cmp.Diff(want, kind.Facts()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", kind, diff)
		}
	}
	for _, k := range DefaultKinds() {
		if k.Facts().OptIn {
			t.Errorf("%v is a default and needs permission", k)
		}
	}
}

func TestKindText(t *testing.T) {
	for k := None; k < kindCount; k++ {
		text, err := json.Marshal(map[Kind]Kind{k: k})
		if err != nil {
			t.Fatal(err)
		}
		var back map[Kind]Kind
		if err := json.Unmarshal(text, &back); err != nil || back[k] != k || len(back) != 1 {
			t.Errorf("%s reads back as %v, %v", text, back, err)
		}
	}
	if _, err := kindCount.MarshalText(); err == nil {
		t.Error("a kind without a name was written")
	}
	k := Malformed
	if err := k.UnmarshalText([]byte("nope")); err == nil || k != Malformed {
		t.Errorf("a bad name left %v, %v", k, err)
	}
}

func TestParseKind(t *testing.T) {
	for _, name := range []string{"time_out", "rate-limit", "Timeout", "", "none", "gravity", strings.Repeat("x", 1_000)} {
		kind, err := ParseKind(name)
		if err == nil || kind != None || !strings.Contains(err.Error(), "valid: timeout, rate_limit, server_error, malformed, connection_refused, response_lost") {
			t.Errorf("ParseKind(%q) = %v, %v; want an error that lists the kinds", name, kind, err)
		}
	}
}

func FuzzParseKind(f *testing.F) {
	for k := None; k <= kindCount; k++ {
		f.Add(k.String())
	}
	f.Fuzz(func(t *testing.T, name string) {
		kind, err := ParseKind(name)
		if (err == nil) != (kind != None) || err == nil && kind.String() != name {
			t.Errorf("ParseKind(%q) = %v, %v", name, kind, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error of %q has more than one line", name)
		}
	})
}
