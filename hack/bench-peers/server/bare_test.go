package main

import (
	"strings"
	"testing"
	"time"
)

func TestReplyCopiesTheID(t *testing.T) {
	for _, tc := range []struct{ name, message, want string }{
		{"Number", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}`, `{"jsonrpc":"2.0","id":7,"result":{"content"`},
		{"String", `{"jsonrpc":"2.0","id":"a-7","method":"tools/call"}`, `{"jsonrpc":"2.0","id":"a-7","result":{"content"`},
		{"IDLast", `{"method":"tools/call","jsonrpc":"2.0","id": 8 }`, `{"jsonrpc":"2.0","id":8,"result":{"content"`},
		{"Handshake", `{"jsonrpc":"2.0","id":0,"method":"initialize"}`, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion"`},
		{"Unknown", `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, `{"jsonrpc":"2.0","id":1,"error"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(reply(nil, []byte(tc.message), func() {})); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s, want %s…", got, tc.want)
			}
		})
	}
}

func TestReplySaysNothingToANotification(t *testing.T) {
	calls := 0
	got := reply(nil, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), func() { calls++ })
	if len(got) > 0 || calls > 0 {
		t.Errorf("got %q and %d calls, want nothing", got, calls)
	}
}

func TestWindow(t *testing.T) {
	w := window{at: 4 * time.Second, length: time.Second}
	for since, want := range map[time.Duration]time.Duration{
		3999 * time.Millisecond: 0, 4 * time.Second: time.Second, 4900 * time.Millisecond: 100 * time.Millisecond, 5 * time.Second: 0,
	} {
		if got := w.left(since); got != want {
			t.Errorf("left(%v): got %v, want %v", since, got, want)
		}
	}
}
