package bus

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
)

const (
	referenceConfig    = "../../../deploy/nats/nats.conf"
	controllerPassword = "controllerSecret"
	agentPassword      = "agentSecret"
)

// reference is the reference configuration, with certificates of an authority;
// edit changes its text.
func reference(t *testing.T, own *authority, edit func(string) string) *server.Options {
	t.Helper()
	cert, key := own.issue("127.0.0.1", 2*time.Hour)
	for name, value := range map[string]string{"NATS_STORE": t.TempDir(), "NATS_CERT": cert, "NATS_KEY": key, "NATS_CA": own.ca(),
		"ORDEAL_CONTROLLER_PASSWORD": controllerPassword, "ORDEAL_AGENT_PASSWORD": agentPassword} {
		t.Setenv(name, value)
	}
	text, err := os.ReadFile(referenceConfig)
	must(t, err)
	config := string(text)
	if edit != nil {
		config = edit(config)
	}
	path := filepath.Join(t.TempDir(), "nats.conf")
	must(t, os.WriteFile(path, []byte(config), 0o600))
	opt, err := server.ProcessConfigFile(path)
	must(t, err)
	opt.Host, opt.Port, opt.HTTPPort, opt.NoSigs, opt.NoLog = "127.0.0.1", -1, 0, true, true
	return opt
}

// uncomment makes a commented line of the configuration count.
func uncomment(t *testing.T, line string) func(string) string {
	return func(config string) string {
		if !strings.Contains(config, "# "+line+"\n") {
			t.Fatalf("the configuration has no comment %q", line)
		}
		return strings.Replace(config, "# "+line+"\n", line+"\n", 1)
	}
}

func startReference(t *testing.T, opt *server.Options) string {
	t.Helper()
	srv, err := server.NewServer(opt)
	must(t, err)
	return addr(run(t, srv))
}

// The agents' user of the reference configuration may do what wire says, for
// any agent and pool.
func TestReferencePermissions(t *testing.T) {
	opt := reference(t, newAuthority(t, "own"), nil)
	i := slices.IndexFunc(opt.Users, func(u *server.User) bool { return u.Username == "agent" })
	if i < 0 {
		t.Fatal("no user agent")
	}
	got := opt.Users[i].Permissions
	publish, subscribe := wire.Permissions("*", []string{"*"})
	if diff := cmp.Diff(publish, got.Publish.Allow); diff != "" {
		t.Errorf("publish (-wire +nats.conf):\n%s", diff)
	}
	if diff := cmp.Diff(subscribe, got.Subscribe.Allow); diff != "" {
		t.Errorf("subscribe (-wire +nats.conf):\n%s", diff)
	}
	if got.Response == nil || got.Response.MaxMsgs != 1 || got.Response.Expires < wire.PrepareWait {
		t.Errorf("responses %+v, want one within %v", got.Response, wire.PrepareWait)
	}
	if int(opt.MaxPayload) != wire.MaxPayload {
		t.Errorf("max_payload %d, want %d", opt.MaxPayload, wire.MaxPayload)
	}
}

// A fleet with the two users of the reference configuration works a unit.
func TestReferenceServesAFleet(t *testing.T) {
	own := newAuthority(t, "own")
	url := startReference(t, reference(t, own, nil))
	controller := dial(t, Link{URLs: url, CA: own.ca(), User: "controller:" + controllerPassword})
	prepare(t, controller, Files, queue)
	agent := dial(t, Link{URLs: url, CA: own.ca(), User: "agent:" + agentPassword, Agent: "a1"})
	life(t, controller, agent, "a1", queue)
	for _, user := range []string{"agent:" + controllerPassword, "controller:" + agentPassword, ""} {
		_, err := Connect(t.Context(), Link{URLs: url, CA: own.ca(), User: user})
		if err == nil {
			t.Errorf("user %q got in", user)
		}
	}
}

// With verify, a client needs a certificate too.
func TestReferenceWithClientCertificates(t *testing.T) {
	own := newAuthority(t, "own")
	url := startReference(t, reference(t, own, uncomment(t, "verify: true")))
	cert, key := own.issue("client", 2*time.Hour)
	controller := dial(t, Link{URLs: url, CA: own.ca(), Cert: cert, Key: key, User: "controller:" + controllerPassword})
	prepare(t, controller, Files, queue)
	agent := dial(t, Link{URLs: url, CA: own.ca(), Cert: cert, Key: key, User: "agent:" + agentPassword, Agent: "a1"})
	life(t, controller, agent, "a1", queue)
	_, err := Connect(t.Context(), Link{URLs: url, CA: own.ca(), User: "agent:" + agentPassword, Agent: "a1"})
	oneLine(t, err, "--tls-cert")
}

// What the server remembers of a pull over the accounts' border, it forgets.
func TestPullsAreForgotten(t *testing.T) {
	own := newAuthority(t, "own")
	opt := reference(t, own, func(config string) string {
		if !strings.Contains(config, `response_threshold: "1m"`) {
			t.Fatal("the configuration has no threshold of a minute")
		}
		return strings.Replace(config, `response_threshold: "1m"`, `response_threshold: "1s"`, 1)
	})
	srv, err := server.NewServer(opt)
	must(t, err)
	url := addr(run(t, srv))
	prepare(t, dial(t, Link{URLs: url, CA: own.ca(), User: "controller:" + controllerPassword}), Files, queue)
	q := join(t, dial(t, Link{URLs: url, CA: own.ca(), User: "agent:" + agentPassword, Agent: "a1"}), queue)
	for range 100 {
		if d, err := q.Next(t.Context(), time.Millisecond); d != nil || err != nil {
			t.Fatal(d, err)
		}
	}
	account, err := srv.LookupAccount("ORDEAL")
	must(t, err)
	for limit := time.Now().Add(10 * time.Second); account.NumPendingAllResponses() > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d pulls are remembered", account.NumPendingAllResponses())
		}
	}
}
