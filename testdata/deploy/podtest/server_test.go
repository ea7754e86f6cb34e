package podtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"ordeal/agent/wire"
)

// The passwords that the pod has from a Secret.
const (
	agentPassword      = "p123agent"
	controllerPassword = "p456controller"
)

// config is the text of nats.conf in the manifests.
func config(t *testing.T) string { t.Helper(); return file(t, "nats.conf") }

// options is what the server makes of the configuration in its pod's environment,
// with the pod's directories below dir.
func options(t *testing.T, conf, dir string) *server.Options {
	t.Helper()
	t.Setenv("POD_NAME", "ordeal-nats-0")
	t.Setenv("NATS_AGENT_PASSWORD", agentPassword)
	t.Setenv("NATS_CONTROLLER_PASSWORD", controllerPassword)
	conf = strings.NewReplacer("/run/secrets/ordeal/nats-server", dir, "/data", filepath.Join(dir, "data")).Replace(conf)
	path := filepath.Join(dir, "server.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

// start runs the server. The client options are what it takes to trust it, and to be
// trusted, when the configuration has TLS.
func start(t *testing.T) (opts *server.Options, url string, secure []nats.Option) {
	t.Helper()
	return startIn(t, t.TempDir())
}

// startIn has its certificates, as tls.crt, tls.key and ca.crt, in dir.
func startIn(t *testing.T, dir string) (opts *server.Options, url string, secure []nats.Option) {
	t.Helper()
	conf := config(t)
	if strings.Contains(conf, "tls {") {
		certificates(t, dir)
		secure = append(secure, nats.RootCAs(filepath.Join(dir, "ca.crt")))
	}
	if strings.Contains(conf, "verify: true") {
		secure = append(secure, nats.ClientCert(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")))
	}
	opts = options(t, conf, dir)
	run := opts.Clone()
	run.Host, run.Port, run.HTTPPort, run.NoSigs, run.NoLog = "127.0.0.1", -1, 0, true, true
	s, err := server.NewServer(run)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready after 10s")
	}
	return opts, s.ClientURL(), secure
}

// TestPod: the server is what its pod's probes and the wire expect.
func TestPod(t *testing.T) {
	opts := options(t, withoutTLS(config(t)), t.TempDir())
	if opts.ServerName != "ordeal-nats-0" || opts.Port != 4222 || opts.HTTPPort != 8222 || !opts.JetStream {
		t.Errorf("name %q, ports %d and %d, jetstream %v", opts.ServerName, opts.Port, opts.HTTPPort, opts.JetStream)
	}
	if opts.MaxPayload != wire.MaxPayload {
		t.Errorf("max_payload %d, want %d", opts.MaxPayload, wire.MaxPayload)
	}
}

// withoutTLS leaves out the block whose files are not there.
func withoutTLS(conf string) string {
	before, rest, found := strings.Cut(conf, "tls {")
	if !found {
		return conf
	}
	_, after, _ := strings.Cut(rest, "\n}")
	return before + after
}
