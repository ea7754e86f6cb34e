package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInvocationKeepsReferencesAndDropsLiterals(t *testing.T) {
	var f scanFlags
	cmd := newScanCmd(Streams{})
	cmd.ResetFlags()
	f.bind(cmd.Flags())
	err := cmd.ParseFlags([]string{"--timeout", "3", "--header", "Authorization: Bearer s3cret", "--header", "X-Key: $KEY", "--allow-mutating",
		"--json-out", "x.json", "--base-url", "http://u:p@h/v1?key=s3cret", "--tool", "echo",
		"--nats", "nats://u:p@a:4222,nats://b:4222"})
	if err != nil {
		t.Fatal(err)
	}
	f.spec.TargetText = "openai:m"
	want := []string{"scan", "openai:m", "--tool", "echo", "--timeout", "3s", "--allow-mutating",
		"--header", "Authorization: LITERAL_SECRET", "--header", "X-Key: $KEY", "--base-url", "http://REDACTED@h/v1?key=REDACTED",
		"--nats", "nats://REDACTED@a:4222,nats://b:4222"}
	if diff := cmp.Diff(want, invocation(cmd, &f.spec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
