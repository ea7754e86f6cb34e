package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/pflag"
)

func bind(t *testing.T, required bool, args ...string) *LinkFlags {
	t.Helper()
	var f LinkFlags
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Bind(fs, required)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &f
}

// startNATS runs a server with one user and returns its URL.
func startNATS(t *testing.T, user, password string) string {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, Username: user, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	return srv.ClientURL()
}

func TestGiven(t *testing.T) {
	tests := []struct {
		name, env string
		required  bool
		args      []string
		want      bool
	}{
		{"Nothing", "", true, nil, false},
		{"Flag", "", false, []string{"--nats", "nats://a:4222"}, true},
		{"Variable", "nats://a:4222", true, nil, true},
		{"VariableOfAScan", "nats://a:4222", false, nil, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv(natsURL, tc.env)
			if got := bind(t, tc.required, tc.args...).Given(); got != tc.want {
				t.Errorf("Given = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestConnectWithReferences(t *testing.T) {
	const password = "a:b$c}"
	url := startNATS(t, "me", password)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ORDEAL_TEST_PASSWORD", password)
	t.Setenv("ORDEAL_TEST_USER", "me:"+password)
	t.Setenv(natsURL, url)
	for name, args := range map[string][]string{
		"Literal":     {"--user", "me:" + password, "--nats", url},
		"Environment": {"--user", "me:${env:ORDEAL_TEST_PASSWORD}"},
		"File":        {"--user", "me:${file:" + file + "}"},
		"Whole":       {"--user", "${env:ORDEAL_TEST_USER}"},
		"FlagWins":    {"--user", "me:" + password, "--nats", url},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := bind(t, true, args...).Connect(t.Context(), "test", "")
			if err != nil {
				t.Fatal(err)
			}
			b.Close()
		})
	}
}

// Whatever is given where, no error repeats a secret, and each is one line that
// names a flag.
func TestConnectErrorsTellNoSecret(t *testing.T) {
	url := startNATS(t, "me", "right")
	t.Setenv("ORDEAL_TEST_SECRET", "s3cret")
	t.Setenv("ORDEAL_TEST_EMPTY", "")
	host := strings.TrimPrefix(url, "nats://")
	tests := map[string]struct {
		args []string
		want string
	}{
		"NoServers":        {nil, "give --nats nats://HOST:4222, or set NATS_URL"},
		"WrongPassword":    {[]string{"--nats", url, "--user", "me:s3cret"}, "--user"},
		"WrongReference":   {[]string{"--nats", url, "--user", "me:${env:ORDEAL_TEST_SECRET}"}, "--user"},
		"WrongToken":       {[]string{"--nats", url, "--token", "${env:ORDEAL_TEST_SECRET}"}, "--token"},
		"WrongInURL":       {[]string{"--nats", "nats://me:s3cret@" + host}, "--nats"},
		"Unset":            {[]string{"--nats", url, "--user", "s3cret:${env:ORDEAL_TEST_UNSET}"}, "--user: secret reference ${env:ORDEAL_TEST_UNSET}"},
		"Empty":            {[]string{"--nats", url, "--token", "${env:ORDEAL_TEST_EMPTY}"}, "--token: ${env:ORDEAL_TEST_EMPTY} is empty"},
		"NoFile":           {[]string{"--nats", url, "--token", "${file:/no/such}"}, "--token: secret reference ${file:/no/such}"},
		"DollarInPassword": {[]string{"--nats", url, "--user", "me:$s3cret"}, "--user"},
		"BraceInPassword":  {[]string{"--nats", url, "--user", "me:${s3cret"}, "--user"},
		"AlmostReference":  {[]string{"--nats", url, "--user", "me:${env:s3cret-x}"}, "--user"},
		"ReferenceInURL":   {[]string{"--nats", "nats://me:${env:ORDEAL_TEST_SECRET}@" + host}, "--user"},
		"NoColon":          {[]string{"--nats", url, "--user", "s3cret"}, "--user wants NAME:PASSWORD"},
		"UserIsReference":  {[]string{"--nats", url, "--user", "${env:ORDEAL_TEST_SECRET}"}, "--user wants NAME:PASSWORD"},
		"BadURL":           {[]string{"--nats", "nats://me:s3cret@[::1"}, "--nats"},
		"SecretAsURL":      {[]string{"--nats", "nats://s3cret@127.0.0.1:1"}, "--nats"},
		"SecretAsFile":     {[]string{"--nats", url, "--nkey", "SUs3cretAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}, "--nkey wants the path of a file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(natsURL, "")
			_, err := bind(t, true, tc.args...).Connect(t.Context(), "test", "")
			if err == nil {
				t.Fatal("connected")
			}
			text := err.Error()
			if !strings.Contains(text, tc.want) || strings.Contains(text, "s3cret") || strings.Contains(text, "\n") {
				t.Errorf("error %q: want one line with %q and no secret", text, tc.want)
			}
		})
	}
}

// A controller gives up, an agent waits and says so.
func TestOnlyAgentsArePatient(t *testing.T) {
	f := bind(t, false, "--nats", "nats://127.0.0.1:1")
	if _, err := f.Connect(t.Context(), "ordeal", ""); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("err %v, want connection refused", err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	f.Messages = func(text string) { cancel(fmt.Errorf("%w: %s", enough, text)) }
	if _, err := f.Connect(ctx, "ordeal-agent a1", "a1"); !errors.Is(err, enough) || !strings.Contains(err.Error(), "waiting for NATS at nats://127.0.0.1:1") {
		t.Errorf("err %v, want %v after it said that it waits", err, enough)
	}
}
