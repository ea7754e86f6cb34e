package bus

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"ordeal/agent/wire"
)

var gpuQueue = wire.QueueName("gpu", digest)

// guarded is a fleet over TLS 1.3 whose users have nkeys and what
// wire.Permissions gives them: a controller, an agent a1 of the default pool, who
// is the attacker, and an agent a2 of another pool.
type guarded struct {
	controller, a1, a2 *Bus
	refusals           *refusals // of a1
}

// refusals are what the server said to an attacker.
type refusals struct {
	mu    sync.Mutex
	texts []string
}

func (r *refusals) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, text)
}

// of says whether the server refused a subject.
func (r *refusals) of(verb, subject string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := fmt.Sprintf("Permissions Violation for %s to %q", verb, subject)
	return slices.ContainsFunc(r.texts, func(text string) bool { return strings.Contains(text, want) })
}

// nkey is a fresh key: its public half, and the file of its seed.
func nkey(t *testing.T) (public, file string) {
	t.Helper()
	file = seedFile(t, nkeys.PrefixByteUser)
	seed, err := os.ReadFile(file)
	must(t, err)
	pair, err := nkeys.FromSeed(seed)
	must(t, err)
	public, err = pair.PublicKey()
	must(t, err)
	return public, file
}

// guard puts users with nkeys in place of those of the reference configuration.
// oneAccount has all of them in the controllers' account.
func guard(t *testing.T, oneAccount bool) *guarded {
	t.Helper()
	own := newAuthority(t, "own")
	opt := reference(t, own, nil)
	accounts := map[string]*server.Account{}
	for _, u := range opt.Users {
		accounts[u.Username] = u.Account
	}
	if oneAccount {
		accounts["agent"] = accounts["controller"]
	}
	opt.Users = nil
	seeds := map[string]string{}
	user := func(name string, account *server.Account, p *server.Permissions) {
		public, seed := nkey(t)
		seeds[name] = seed
		opt.Nkeys = append(opt.Nkeys, &server.NkeyUser{Nkey: public, Account: account, Permissions: p})
	}
	user("controller", accounts["controller"], nil)
	user("a1", accounts["agent"], permissions("a1", queue))
	user("a2", accounts["agent"], permissions("a2", gpuQueue))
	url := startReference(t, opt)
	g := &guarded{refusals: &refusals{}}
	g.controller = dial(t, Link{URLs: url, CA: own.ca(), Nkey: seeds["controller"], Name: "controller"})
	prepare(t, g.controller, Files, queue, gpuQueue)
	g.a1 = dial(t, Link{URLs: url, CA: own.ca(), Nkey: seeds["a1"], Agent: "a1", Name: "a1", Messages: g.refusals.note})
	g.a2 = dial(t, Link{URLs: url, CA: own.ca(), Nkey: seeds["a2"], Agent: "a2", Name: "a2"})
	return g
}

func permissions(agent, queue string) *server.Permissions {
	publish, subscribe := wire.Permissions(agent, []string{queue})
	return &server.Permissions{Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
		Response: &server.ResponsePermission{MaxMsgs: 1, Expires: 2 * time.Minute}}
}

// life is a whole life of an agent: what wire.Permissions is for.
func life(t *testing.T, controller, agent *Bus, id, queue string) {
	t.Helper()
	run := "life-of-" + id
	events, grants, controls := make(chan wire.Event, 8), make(chan wire.Ask, 8), make(chan wire.Control, 8)
	progress, results := make(chan wire.Progress, 8), make(chan *wire.Result, 8)
	subscribe := func(stop func(), err error) { t.Helper(); stopping(t, stop, err) }
	subscribe(controller.OnEvent(run, func(e wire.Event) { events <- e }))
	subscribe(controller.OnAsk(run, func(a wire.Ask) (wire.Grant, bool) { grants <- a; return wire.Grant{Generation: 7}, true }))
	subscribe(controller.OnProgress(run, func(p wire.Progress) { progress <- p }))
	subscribe(controller.Results(t.Context(), run, 0, func(r *wire.Result) { results <- r }))
	subscribe(agent.OnControl(func(_ string, c wire.Control) { controls <- c }))
	subscribe(agent.OnRequest(id, func(r wire.Request) wire.Ready { return wire.Ready{V: wire.Version, Agent: id, Clock: 42} }))
	must(t, agent.Announce(within(t, 5*time.Second), wire.Hello{V: wire.Version, ID: id}))
	fleet, err := controller.Fleet(within(t, 5*time.Second))
	must(t, err)
	defer fleet.Close()
	if got := fleet.Agents(); !slices.ContainsFunc(got, func(s Seen) bool { return s.ID == id }) {
		t.Errorf("the controller does not see %s: %+v", id, got)
	}
	bearer := wire.Bearer{V: wire.Version, Agent: id, Instance: "one", Process: "host, process 7"}
	subscribe(agent.OnName(id, func() wire.Bearer { return bearer }))
	if who, err := agent.Bearer(within(t, 5*time.Second), id); err != nil || who != bearer {
		t.Errorf("bearer of the name: %+v, %v", who, err)
	}
	for _, kind := range []string{wire.Ping, wire.Prepare, wire.Abort} {
		if ready, err := controller.Ask(within(t, 5*time.Second), id, wire.Request{Kind: kind}); err != nil || ready.Clock != 42 {
			t.Errorf("%s: %+v, %v", kind, ready, err)
		}
	}
	q := join(t, agent, queue)
	publish(t, controller, queue, unit(run, "u1"))
	d := next(t, q)
	must(t, agent.PublishEvent(run, wire.Event{Kind: wire.Began, Agent: id, Unit: "u1", Ack: d.Ack()}))
	if e := <-events; e.Agent != id || e.Ack == "" {
		t.Errorf("event %+v", e)
	} else {
		must(t, controller.HandOn(e.Ack))
	}
	d = next(t, q)
	if d.Incarnation != 2 {
		t.Errorf("incarnation %d after it was handed on, want 2", d.Incarnation)
	}
	if g, err := agent.AskLease(within(t, 5*time.Second), run, wire.Ask{Agent: id}); err != nil || g.Generation != 7 || (<-grants).Agent != id {
		t.Errorf("grant %+v, %v", g, err)
	}
	must(t, controller.Control(run, wire.Control{Kind: wire.Go}))
	if c := <-controls; c.Kind != wire.Go {
		t.Errorf("control %+v", c)
	}
	must(t, d.Confirm(within(t, 5*time.Second)))
	must(t, agent.PublishProgress(run, wire.Progress{Unit: "u1", Agent: id, Done: 5}))
	if p := <-progress; p.Agent != id || p.Done != 5 {
		t.Errorf("progress %+v", p)
	}
	must(t, d.GiveBack(0))
	d = next(t, q)
	must(t, agent.PublishResult(within(t, 5*time.Second), result(run, id, "u1")))
	must(t, d.Done(within(t, 5*time.Second)))
	if r := <-results; r.Unit != "u1" || r.Agent != id {
		t.Errorf("result %+v", r)
	}
	none(t, q)
	must(t, agent.Leave(within(t, 5*time.Second), id))
	must(t, controller.PurgeResults(t.Context(), run))
}

func TestRestrictedAgentsWork(t *testing.T) {
	for _, oneAccount := range []bool{false, true} {
		t.Run(fmt.Sprintf("oneAccount=%v", oneAccount), func(t *testing.T) {
			g := guard(t, oneAccount)
			life(t, g.controller, g.a1, "a1", queue)
			life(t, g.controller, g.a2, "a2", gpuQueue)
			if len(g.refusals.texts) != 0 {
				t.Errorf("the server refused %q", g.refusals.texts)
			}
		})
	}
}

// furnish gives the fleet something to steal: a run with its document, a unit
// in a2's hands, one that waits in each queue, a result and an entry of a2.
func (g *guarded) furnish(t *testing.T) (held *Delivery) {
	t.Helper()
	_, err := g.controller.CreateRun(t.Context(), &wire.Run{ID: "r1", State: wire.Running})
	must(t, err)
	must(t, g.controller.StoreDocument(t.Context(), "r1", []byte("{}")))
	publish(t, g.controller, gpuQueue, unit("r1", "g1"))
	held = next(t, join(t, g.a2, gpuQueue))
	publish(t, g.controller, gpuQueue, unit("r1", "g2"))
	publish(t, g.controller, queue, unit("r1", "u1"))
	must(t, g.a2.PublishResult(t.Context(), result("r1", "a2", "g0")))
	must(t, g.a2.Announce(t.Context(), wire.Hello{V: wire.Version, ID: "a2"}))
	return held
}

// heartbeat renews the entry of a2, where the test may outlast it.
func (g *guarded) heartbeat(t *testing.T) {
	t.Helper()
	must(t, g.a2.Announce(t.Context(), wire.Hello{V: wire.Version, ID: "a2"}))
}

// state is every message of every stream but a1's own results and entry, and
// how many units are in hand.
func (g *guarded) state(t *testing.T) []string {
	t.Helper()
	var all []string
	names := g.controller.js.StreamNames(t.Context())
	for name := range names.Name() {
		stream, err := g.controller.js.Stream(t.Context(), name)
		must(t, err)
		info := stream.CachedInfo()
		all = append(all, fmt.Sprintf("stream %s consumers %d", name, info.State.Consumers))
		for seq := info.State.FirstSeq; seq > 0 && seq <= info.State.LastSeq; seq++ {
			m, err := stream.GetMsg(t.Context(), seq)
			if err != nil || m.Subject == wire.RegistrySubject("a1") || strings.HasPrefix(m.Subject, "ordeal.v1.result.r1.a1.") {
				continue // deleted, or its own
			}
			all = append(all, name+" "+m.Subject+" "+string(m.Data))
		}
	}
	must(t, names.Err())
	for _, q := range []string{queue, gpuQueue} {
		consumer, err := g.controller.js.Consumer(t.Context(), wire.UnitStream, wire.ConsumerName(q))
		must(t, err)
		info := consumer.CachedInfo()
		all = append(all, fmt.Sprintf("queue %s in hand %d", q, info.NumAckPending))
	}
	slices.Sort(all)
	return all
}

// attack are subjects by what an attacker wants with them.
type attack struct {
	want     string
	subjects []string
}

// forbidden to publish to.
func forbidden(held *Delivery) []attack {
	attacks := []attack{
		{"pull from another pool's queue", []string{"$JS.API.CONSUMER.MSG.NEXT.ORDEAL_UNITS." + wire.ConsumerName(gpuQueue), "$JS.API.CONSUMER.INFO.ORDEAL_UNITS." + wire.ConsumerName(gpuQueue)}},
		{"publish a unit", []string{wire.UnitSubject(queue, "r1", "x"), wire.UnitSubject(gpuQueue, "r1", "x")}},
		{"publish a result as another agent", []string{wire.ResultSubject("r1", "a2", "g1"), "ordeal.v1.result.r1"}},
		{"heartbeat as another agent", []string{wire.RegistrySubject("a2")}},
		{"speak as another agent", []string{wire.ProgressSubject("r1", "a2"), wire.EventSubject("r1", "a2"), wire.LeaseSubject("r1", "a2"), wire.NameSubject("a2")}},
		{"write a run or a document", []string{"$KV.ORDEAL_RUNS.r1", "$O.ORDEAL_BLOBS.C.x", "$O.ORDEAL_BLOBS.M.x"}},
		{"control a run", []string{wire.ControlSubject("r1")}},
		{"give orders to a controller", []string{wire.RunSubject("r1")}},
		{"ask an agent", []string{wire.AgentSubject("a2"), wire.AgentSubject("a1")}},
		{"acknowledge another pool's unit", []string{held.Ack(), "$JS.ACK.ORDEAL_RESULTS.c.1.1.1.1.0"}},
		{"forge an answer", []string{wire.InboxPrefix("a2") + ".x.y", "_INBOX.x.y", "_R_.x"}},
		{"administer the server", []string{"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.ACCOUNT.PURGE.ORDEAL", "$JS.API.META.LEADER.STEPDOWN", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.ORDEAL.CONNZ"}},
	}
	for _, stream := range []string{wire.UnitStream, wire.ResultStream, "KV_" + wire.RunBucket, "KV_" + wire.AgentBucket, "OBJ_" + wire.BlobBucket} {
		var all []string
		for _, verb := range []string{"STREAM.INFO.%s", "STREAM.CREATE.%s", "STREAM.UPDATE.%s", "STREAM.DELETE.%s", "STREAM.PURGE.%s", "STREAM.SNAPSHOT.%s", "STREAM.RESTORE.%s",
			"STREAM.MSG.GET.%s", "STREAM.MSG.DELETE.%s", "STREAM.PEER.REMOVE.%s", "STREAM.LEADER.STEPDOWN.%s", "DIRECT.GET.%s", "DIRECT.GET.%s.$KV.ORDEAL_RUNS.r1",
			"CONSUMER.CREATE.%s", "CONSUMER.CREATE.%s.x", "CONSUMER.CREATE.%s.x.ordeal.v1.result.>", "CONSUMER.DURABLE.CREATE.%s.x", "CONSUMER.NAMES.%s", "CONSUMER.LIST.%s",
			"CONSUMER.INFO.%s.x", "CONSUMER.MSG.NEXT.%s.x",
			"CONSUMER.DELETE.%s." + wire.ConsumerName(queue), "CONSUMER.PAUSE.%s." + wire.ConsumerName(queue), "CONSUMER.UNPIN.%s." + wire.ConsumerName(queue), "CONSUMER.RESET.%s." + wire.ConsumerName(queue),
			"CONSUMER.LEADER.STEPDOWN.%s." + wire.ConsumerName(queue)} {
			all = append(all, "$JS.API."+fmt.Sprintf(verb, stream))
		}
		attacks = append(attacks, attack{"read or change " + stream, all})
	}
	for i, a := range attacks {
		for _, s := range a.subjects {
			if rest, ok := strings.CutPrefix(s, "$JS.API."); ok { // the same under the agents' own name for it
				attacks[i].subjects = append(attacks[i].subjects, wire.APIPrefix+"."+rest)
			}
		}
	}
	return attacks
}

// eavesdropping are subjects that a1 must not subscribe to.
var eavesdropping = []attack{
	{"hear everything", []string{">", "*", "*.>", "ordeal.>", "ordeal.*.>", "ordeal.v1.>", "$JS.>", "$JS.API.>", "$JS.ACK.>", "$JS.EVENT.>", "$KV.>", "$O.>", "$SYS.>", "_R_.>"}},
	{"hear other agents", []string{wire.NameSubject("a2"), wire.NameSubject("*"), wire.AgentSubject("a2"), wire.AgentSubject("*"), "ordeal.v1.agent.>", wire.ResultSubject("*", "a2", "*"), wire.RunResults("r1"), "ordeal.v1.result.>",
		wire.ProgressSubject("r1", "a2"), wire.EventSubject("r1", "*"), wire.LeaseSubject("r1", "*"), wire.RegistrySubject("a2"), wire.RegistrySubject("*")}},
	{"read other inboxes", []string{wire.InboxPrefix("a2") + ".>", wire.InboxPrefix("*") + ".>", "_INBOX.agent.>", "_INBOX.*", "_INBOX.*.*", "_INBOX.>"}},
	{"hear controllers", []string{wire.RunSubject("r1"), "ordeal.v1.run.>", "ordeal.v1.unit.>", wire.QueueSubjects(queue), "$KV.ORDEAL_RUNS.>"}},
}

// Each thing that an agent must not do is tried, and refused.
func TestEachPermissionIsRefused(t *testing.T) {
	for _, oneAccount := range []bool{false, true} {
		t.Run(fmt.Sprintf("oneAccount=%v", oneAccount), func(t *testing.T) {
			g := guard(t, oneAccount)
			held := g.furnish(t)
			before := g.state(t)
			g.listen(t)
			for _, a := range forbidden(held) {
				t.Run(a.want, func(t *testing.T) {
					for _, subject := range a.subjects {
						must(t, g.a1.nc.PublishRequest(subject, g.a1.nc.NewInbox(), []byte("{}")))
						must(t, g.a1.nc.Flush())
						g.refused(t, "Publish", subject)
					}
				})
			}
			for _, a := range eavesdropping {
				t.Run(a.want, func(t *testing.T) {
					for _, subject := range a.subjects {
						for _, group := range []string{"", "thieves"} {
							sub, err := g.a1.nc.QueueSubscribeSync(subject, group)
							must(t, err)
							must(t, g.a1.nc.Flush())
							g.refused(t, "Subscription", subject)
							_ = sub.Unsubscribe() // the server may have ended it
						}
					}
				})
			}
			g.heartbeat(t)
			if diff := cmp.Diff(before, g.state(t)); diff != "" {
				t.Errorf("the attacks changed something (-before +after):\n%s", diff)
			}
			must(t, g.controller.Purge(t.Context(), queue, "r1"))
			life(t, g.controller, g.a1, "a1", queue)
		})
	}
}

// refused waits for the server's word about a subject: it is said on another
// goroutine than the flush returns on.
func (g *guarded) refused(t *testing.T, verb, subject string) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Second); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		if g.refusals.of(verb, subject) {
			return
		}
	}
	t.Errorf("%s to %s was not refused", verb, subject)
}

// listen fails the test when a2 or the controller hears anything from the
// attacker that could be taken for a control, a request, an order or a word of
// another agent.
func (g *guarded) listen(t *testing.T) {
	t.Helper()
	known := []string{wire.Go, wire.Halt, wire.Release, wire.Quota}
	stop, err := g.a2.OnControl(func(run string, c wire.Control) {
		if run == "r1" && slices.Contains(known, c.Kind) {
			t.Errorf("a2 is told to %s by an attacker", c.Kind)
		}
	})
	stopping(t, stop, err)
	stop, err = g.a2.OnRequest("a2", func(r wire.Request) wire.Ready {
		if r.Kind != "" {
			t.Errorf("a2 is asked to %s by an attacker", r.Kind)
		}
		return wire.Ready{}
	})
	stopping(t, stop, err)
	stop, err = g.controller.OnOrder("r1", func(o wire.Order) (wire.Order, bool) {
		if o.Kind != "" {
			t.Errorf("the controller is ordered to %s by an attacker", o.Kind)
		}
		return o, false
	})
	stopping(t, stop, err)
	stop, err = g.controller.OnEvent("r1", func(e wire.Event) {
		if e.Agent == "a2" && e.Kind != "" {
			t.Errorf("a word of a2 that it did not say: %+v", e)
		}
	})
	stopping(t, stop, err)
}

// What the package offers to controllers fails for an agent, within its
// deadline.
func TestControllersCallsFailForAnAgent(t *testing.T) {
	g := guard(t, false)
	held := g.furnish(t)
	before := g.state(t)
	g.listen(t)
	run := &wire.Run{ID: "r2"}
	calls := map[string]func(context.Context) error{
		"Setup":        func(ctx context.Context) error { return g.a1.Setup(ctx, Files) },
		"OpenQueue":    func(ctx context.Context) error { return g.a1.OpenQueue(ctx, queue) },
		"OtherQueue":   func(ctx context.Context) error { _, err := g.a1.Queue(ctx, gpuQueue); return err },
		"PublishUnits": func(ctx context.Context) error { return g.a1.PublishUnits(ctx, queue, []*wire.Unit{unit("r1", "x")}) },
		"Purge":        func(ctx context.Context) error { return g.a1.Purge(ctx, queue, "r1") },
		"Remove":       func(ctx context.Context) error { return g.a1.Remove(ctx, queue, "r1", "u1") },
		"Results": func(ctx context.Context) error {
			_, err := g.a1.Results(ctx, "r1", 0, func(*wire.Result) {})
			return err
		},
		"StoredResults": func(ctx context.Context) error {
			_, err := g.a1.StoredResults(ctx, "r1", func(*wire.Result) {})
			return err
		},
		"PurgeResults":  func(ctx context.Context) error { return g.a1.PurgeResults(ctx, "r1") },
		"OtherResult":   func(ctx context.Context) error { return g.a1.PublishResult(ctx, result("r1", "a2", "g1")) },
		"CreateRun":     func(ctx context.Context) error { _, err := g.a1.CreateRun(ctx, run); return err },
		"UpdateRun":     func(ctx context.Context) error { _, err := g.a1.UpdateRun(ctx, run, 1); return err },
		"Run":           func(ctx context.Context) error { _, _, err := g.a1.Run(ctx, "r1"); return err },
		"Runs":          func(ctx context.Context) error { _, err := g.a1.Runs(ctx); return err },
		"Document":      func(ctx context.Context) error { _, err := g.a1.Document(ctx, "r1"); return err },
		"StoreDocument": func(ctx context.Context) error { return g.a1.StoreDocument(ctx, "r1", nil) },
		"Fleet":         func(ctx context.Context) error { _, err := g.a1.Fleet(ctx); return err },
		"OtherAnnounce": func(ctx context.Context) error { return g.a1.Announce(ctx, wire.Hello{ID: "a2"}) },
		"OtherLeave":    func(ctx context.Context) error { return g.a1.Leave(ctx, "a2") },
		"Ask": func(ctx context.Context) error {
			_, err := g.a1.Ask(ctx, "a2", wire.Request{Kind: wire.Ping})
			return err
		},
		"SendOrder": func(ctx context.Context) error {
			_, err := g.a1.SendOrder(ctx, "r1", wire.Order{Kind: wire.OrderHalt})
			return err
		},
		"OtherLease": func(ctx context.Context) error { _, err := g.a1.AskLease(ctx, "r1", wire.Ask{Agent: "a2"}); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			if err := call(within(t, 300*time.Millisecond)); err == nil {
				t.Error("it worked")
			}
		})
	}
	must(t, g.a1.Control("r1", wire.Control{Kind: wire.Halt})) // sent into the void
	must(t, g.a1.HandOn(held.Ack()))
	must(t, g.a1.nc.Flush())
	g.refused(t, "Publish", wire.ControlSubject("r1"))
	g.refused(t, "Publish", held.Ack())
	g.heartbeat(t)
	if diff := cmp.Diff(before, g.state(t)); diff != "" {
		t.Errorf("the calls changed something (-before +after):\n%s", diff)
	}
}

// A request's answer goes where the request says, and the server and the
// controller may publish anywhere. With an account of their own, agents cannot
// use that to write, delete or say what they may not.
func TestAnswersCannotBeAimed(t *testing.T) {
	g := guard(t, false)
	g.furnish(t)
	g.listen(t)
	stop, err := g.controller.OnAsk("r1", func(wire.Ask) (wire.Grant, bool) { return wire.Grant{Generation: 1}, true })
	stopping(t, stop, err)
	before := g.state(t)
	requests := []string{wire.ResultSubject("r1", "a1", "x"), wire.RegistrySubject("a1"), wire.LeaseSubject("r1", "a1"),
		wire.APIPrefix + ".CONSUMER.INFO.ORDEAL_UNITS." + wire.ConsumerName(queue)}
	aims := []string{"$KV.ORDEAL_RUNS.r1", wire.RegistrySubject("a2"), wire.ResultSubject("r1", "a2", "g1"), wire.UnitSubject(queue, "r1", "x"), wire.ControlSubject("r1"),
		wire.RunSubject("r1"), wire.AgentSubject("a2"), wire.EventSubject("r1", "a2"), "$JS.API.STREAM.PURGE.ORDEAL_RESULTS", "$JS.API.STREAM.MSG.DELETE.ORDEAL_RESULTS",
		"$JS.API.STREAM.MSG.DELETE.KV_ORDEAL_RUNS", "$JS.API.CONSUMER.CREATE.ORDEAL_RESULTS", "$O.ORDEAL_BLOBS.C.x"}
	for _, subject := range requests {
		for _, aim := range aims {
			must(t, g.a1.nc.PublishRequest(subject, aim, []byte("{}")))
		}
	}
	must(t, g.a1.nc.Flush())
	// What the server still has to do for these it does before it answers here.
	must(t, g.a1.Announce(within(t, 5*time.Second), wire.Hello{V: wire.Version, ID: "a1"}))
	must(t, g.a1.PublishResult(within(t, 5*time.Second), result("r1", "a1", "y")))
	if diff := cmp.Diff(before, g.state(t)); diff != "" {
		t.Errorf("the answers changed something (-before +after):\n%s", diff)
	}
}

// A header of a message on an allowed subject does not reach further than the
// subject.
func TestHeadersDoNotReachFurther(t *testing.T) {
	g := guard(t, false)
	g.furnish(t)
	before := g.state(t)
	for _, subject := range []string{wire.RegistrySubject("a1"), wire.ResultSubject("r1", "a1", "x")} {
		for _, header := range [][2]string{{"Nats-Rollup", "all"}, {"Nats-Rollup", "sub"}, {"KV-Operation", "PURGE"}, {"Nats-TTL", "never"},
			{"Nats-Schedule", "@every 1s"}, {"Nats-Schedule-Target", wire.ControlSubject("r1")}, {"Nats-Incr", "1"}, {"Nats-Expected-Last-Sequence", "0"}} {
			m := nats.NewMsg(subject)
			m.Header.Set(header[0], header[1])
			m.Data = []byte("{}")
			_, _ = g.a1.js.PublishMsg(within(t, 2*time.Second), m) // refused or without effect: the state tells
		}
	}
	if diff := cmp.Diff(before, g.state(t)); diff != "" {
		t.Errorf("headers changed something (-before +after):\n%s", diff)
	}
}

// An agent answers a request once, and where the request says.
func TestOneAnswerToARequest(t *testing.T) {
	g := guard(t, false)
	sub, err := g.a1.nc.Subscribe(wire.AgentSubject("a1"), func(m *nats.Msg) {
		for range 2 {
			if err := m.Respond([]byte("{}")); err != nil {
				t.Error(err)
			}
		}
	})
	must(t, err)
	must(t, g.a1.nc.Flush())
	reply := g.controller.nc.NewInbox()
	answers, err := g.controller.nc.SubscribeSync(reply)
	must(t, err)
	must(t, g.controller.nc.PublishRequest(wire.AgentSubject("a1"), reply, []byte("{}")))
	if _, err := answers.NextMsg(5 * time.Second); err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if m, err := answers.NextMsg(100 * time.Millisecond); err == nil {
		t.Errorf("a second answer: %s", m.Data)
	}
	must(t, sub.Unsubscribe())
}

// An agent of one pool cannot join the other's queue even if it guesses the
// consumer, and the unit stays where it is.
func TestOtherPoolsUnitIsNotHandedOut(t *testing.T) {
	g := guard(t, false)
	publish(t, g.controller, gpuQueue, unit("r1", "g1"))
	for _, api := range []jetstream.JetStream{g.a1.js, g.a1.imported} {
		ctx := within(t, 300*time.Millisecond)
		if _, err := api.Consumer(ctx, wire.UnitStream, wire.ConsumerName(gpuQueue)); err == nil {
			t.Error("it joined")
		}
	}
	d := next(t, join(t, g.a2, gpuQueue))
	if d.Incarnation != 1 {
		t.Errorf("incarnation %d, want 1", d.Incarnation)
	}
}
