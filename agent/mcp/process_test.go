package mcp

import "testing"

func TestTellingLine(t *testing.T) {
	rows := []struct{ name, stderr, want string }{
		{"Empty", "", ""},
		{"Last", "listening\nout of memory\n", "out of memory"},
		{"GoPanic", "listening\npanic: nil map\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/main.go:7 +0x1d\nexit status 2\n", "panic: nil map"},
		{"GoFatal", "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\n", "fatal error: all goroutines are asleep - deadlock!"},
		{"LatestOfTwo", "panic: first\npanic: second [recovered]\ngoroutine 1\n", "panic: second [recovered]"},
		{"Python", "Traceback (most recent call last):\n  File \"s.py\", line 1, in <module>\nValueError: no key\n", "ValueError: no key"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := tellingLine(r.stderr); got != r.want {
				t.Errorf("%q, want %q", got, r.want)
			}
		})
	}
}
