package podtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/conf"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"ordeal/agent/wire"
)

// wait bounds every answer; the server is in this process.
const wait = 5 * time.Second

// What an agent needs, and what would let it work for itself: hand out units, steer
// the others, read what they found, break the streams.
var (
	mayPublish = []string{
		"$JS.API.CONSUMER.INFO.ORDEAL_UNITS.pool-default", "$JS.API.CONSUMER.MSG.NEXT.ORDEAL_UNITS.pool-default",
		"$JS.ACK.ORDEAL_UNITS.pool-default.1.1.1.1.0", "$KV.ORDEAL_AGENTS.a1",
		"ordeal.v1.result.r1.a1.u1", "ordeal.v1.progress.r1.a1", "ordeal.v1.event.r1.a1", "ordeal.v1.lease.r1.a1", "ordeal.v1.name.a1",
	}
	mayNotPublish = []string{
		"ordeal.v1.unit.default.r1.u1", "ordeal.v1.ctl.r1", "ordeal.v1.agent.a2", "ordeal.v1.run.r1",
		"$KV.ORDEAL_RUNS.r1", "$JS.API.STREAM.DELETE.ORDEAL_UNITS", "$JS.API.STREAM.PURGE.ORDEAL_RESULTS",
		"$JS.API.STREAM.MSG.GET.ORDEAL_RESULTS", "$JS.API.CONSUMER.DELETE.ORDEAL_UNITS.pool-default", "_INBOX.c1.1",
	}
	maySubscribe    = []string{"ordeal.v1.agent.a1", "ordeal.v1.name.a1", "ordeal.v1.ctl.r1", "_INBOX.agent.a1.>"}
	mayNotSubscribe = []string{
		">", "_INBOX.>", "_INBOX.c1.>", "ordeal.>", "ordeal.v1.unit.>", "ordeal.v1.result.>", "ordeal.v1.lease.>", "$KV.ORDEAL_RUNS.>", "$JS.API.>",
	}
)

// TestReference: the accounts are those of deploy/nats/nats.conf, which its own tests
// hold against the wire.
func TestReference(t *testing.T) {
	for _, who := range []string{"AGENT", "CONTROLLER"} {
		for _, prefix := range []string{"NATS_", "ORDEAL_"} { // the pod's names, the reference's
			t.Setenv(prefix+who+"_PASSWORD", "p"+who)
		}
	}
	for _, name := range []string{"NATS_STORE", "NATS_CERT", "NATS_KEY", "NATS_CA"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("POD_NAME", "ordeal-nats-0")
	want, err := conf.ParseFile("../../../deploy/nats/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	got, err := conf.Parse(config(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want["accounts"], got["accounts"]); diff != "" {
		t.Errorf("accounts, deploy/nats/nats.conf against the chart's:\n%s", diff)
	}
}

// TestPermissions: the lists are those of the wire, and the server goes by them.
func TestPermissions(t *testing.T) {
	opts, url, secure := start(t)
	user := find(t, opts, "agent")
	publish, subscribe := wire.Permissions("*", []string{"*"})
	if diff := cmp.Diff(publish, user.Permissions.Publish.Allow); diff != "" {
		t.Errorf("publish, wire.Permissions against nats.conf:\n%s", diff)
	}
	if diff := cmp.Diff(subscribe, user.Permissions.Subscribe.Allow); diff != "" {
		t.Errorf("subscribe, wire.Permissions against nats.conf:\n%s", diff)
	}
	if find(t, opts, "controller").Permissions != nil {
		t.Error("the controller has limits")
	}
	agent := connect(t, url, "agent", agentPassword, secure)
	controller := connect(t, url, "controller", controllerPassword, secure)
	for _, row := range []struct {
		who      string
		nc       *nats.Conn
		publish  bool
		allowed  bool
		subjects []string
	}{
		{"agent", agent, true, true, mayPublish},
		{"agent", agent, true, false, mayNotPublish},
		{"agent", agent, false, true, maySubscribe},
		{"agent", agent, false, false, mayNotSubscribe},
		{"controller", controller, true, true, slices.Concat(mayPublish, mayNotPublish)},
		{"controller", controller, false, true, slices.Concat(maySubscribe, mayNotSubscribe)},
	} {
		for _, subject := range row.subjects {
			if got := allowed(t, row.nc, row.publish, subject); got != row.allowed {
				t.Errorf("%s on %s (publish %v): allowed %v, want %v", row.who, subject, row.publish, got, row.allowed)
			}
		}
	}
}

// TestLogin: nobody gets in with a wrong password, or without one.
func TestLogin(t *testing.T) {
	_, url, secure := start(t)
	for _, login := range [][2]string{{"agent", controllerPassword}, {"controller", agentPassword}, {"", ""}} {
		nc, err := nats.Connect(url, append([]nats.Option{nats.UserInfo(login[0], login[1])}, secure...)...)
		if err == nil {
			nc.Close()
			t.Errorf("user %q gets in with %q", login[0], login[1])
		}
	}
}

// TestUnit: an agent takes a unit from a queue that the controller made, and
// acknowledges it.
func TestUnit(t *testing.T) {
	_, url, secure := start(t)
	js, err := connect(t, url, "controller", controllerPassword, secure).JetStream(nats.MaxWait(wait))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.AddStream(&nats.StreamConfig{Name: wire.UnitStream, Subjects: []string{wire.UnitSubjects}, Retention: nats.WorkQueuePolicy}); err != nil {
		t.Fatalf("controller makes a stream: %v", err)
	}
	consumer := wire.ConsumerName("default")
	if _, err := js.AddConsumer(wire.UnitStream, &nats.ConsumerConfig{Durable: consumer, AckPolicy: nats.AckExplicitPolicy}); err != nil {
		t.Fatalf("controller makes a consumer: %v", err)
	}
	if _, err := js.Publish(wire.UnitSubject("default", "r1", "u1"), []byte("unit")); err != nil {
		t.Fatalf("controller queues a unit: %v", err)
	}
	theirs, err := connect(t, url, "agent", agentPassword, secure).JetStream(nats.MaxWait(wait), nats.APIPrefix(wire.APIPrefix))
	if err != nil {
		t.Fatal(err)
	}
	sub, err := theirs.PullSubscribe("", consumer, nats.Bind(wire.UnitStream, consumer))
	if err != nil {
		t.Fatalf("agent binds to the queue: %v", err)
	}
	got, err := sub.Fetch(1, nats.MaxWait(wait))
	if err != nil {
		t.Fatalf("agent takes a unit: %v", err)
	}
	if err := got[0].AckSync(); err != nil {
		t.Fatalf("agent acknowledges a unit: %v", err)
	}
	info, err := js.StreamInfo(wire.UnitStream)
	if err != nil || info.State.Msgs != 0 {
		t.Errorf("the queue holds %+v after the ack, err %v; want nothing", info, err)
	}
}

// TestResult: what an agent publishes arrives in the controller's stream, and the
// agent is told so.
func TestResult(t *testing.T) {
	_, url, secure := start(t)
	js, err := connect(t, url, "controller", controllerPassword, secure).JetStream(nats.MaxWait(wait))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.AddStream(&nats.StreamConfig{Name: wire.ResultStream, Subjects: []string{wire.ResultSubjects}}); err != nil {
		t.Fatal(err)
	}
	theirs, err := connect(t, url, "agent", agentPassword, secure).JetStream(nats.MaxWait(wait))
	if err != nil {
		t.Fatal(err)
	}
	ack, err := theirs.Publish(wire.ResultSubject("r1", "a1", "u1"), make([]byte, 7<<20))
	if err != nil || ack.Stream != wire.ResultStream {
		t.Errorf("agent publishes a result of 7 MiB: ack %+v, err %v", ack, err)
	}
}

// TestControl: an agent hears what the controller tells all of them.
func TestControl(t *testing.T) {
	_, url, secure := start(t)
	agent := connect(t, url, "agent", agentPassword, secure)
	sub, err := agent.SubscribeSync(wire.ControlSubject("r1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.FlushTimeout(wait); err != nil {
		t.Fatal(err)
	}
	if err := connect(t, url, "controller", controllerPassword, secure).Publish(wire.ControlSubject("r1"), []byte("halt")); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.NextMsg(wait); err != nil {
		t.Errorf("agent hears halt: %v", err)
	}
}

// TestAnswer: the controller asks an agent something.
func TestAnswer(t *testing.T) {
	_, url, secure := start(t)
	agent := connect(t, url, "agent", agentPassword, secure)
	if _, err := agent.Subscribe(wire.AgentSubject("a1"), func(m *nats.Msg) { _ = m.Respond([]byte("ready")) }); err != nil {
		t.Fatal(err)
	}
	if err := agent.FlushTimeout(wait); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, url, "controller", controllerPassword, secure).Request(wire.AgentSubject("a1"), nil, wait); err != nil {
		t.Errorf("agent answers the controller: %v", err)
	}
}

func find(t *testing.T, opts *server.Options, name string) *server.User {
	t.Helper()
	i := slices.IndexFunc(opts.Users, func(u *server.User) bool { return u.Username == name })
	if i < 0 {
		t.Fatalf("nats.conf has no user %q", name)
	}
	return opts.Users[i]
}

// connect logs in as the pods do; what the server forbids is the connection's last
// error.
func connect(t *testing.T, url, user, password string, secure []nats.Option) *nats.Conn {
	t.Helper()
	options := append([]nats.Option{
		nats.UserInfo(user, password), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, secure...)
	if user == "agent" {
		options = append(options, nats.CustomInboxPrefix(wire.InboxPrefix("a1")))
	}
	nc, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatalf("%s: %v", user, err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// allowed tries one subject. A refusal arrives before the answer to the flush.
func allowed(t *testing.T, nc *nats.Conn, publish bool, subject string) bool {
	t.Helper()
	verb := "publish"
	if publish {
		if err := nc.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
	} else {
		verb = "subscription"
		sub, err := nc.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	if err := nc.FlushTimeout(wait); err != nil {
		t.Fatal(err)
	}
	err := nc.LastError()
	return err == nil || !strings.Contains(strings.ToLower(err.Error()), fmt.Sprintf("%s to %q", verb, strings.ToLower(subject)))
}
