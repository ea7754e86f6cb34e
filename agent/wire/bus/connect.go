package bus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"ordeal/agent/wire"
)

// A dead connection is noticed after pingEvery × (pingsOut+1) at most, and made
// again after reconnectWait, plus up to jitter so that a fleet does not come
// back in one instant.
const (
	pingEvery       = 2 * time.Second
	pingsOut        = 2
	reconnectWait   = 250 * time.Millisecond
	reconnectJitter = 250 * time.Millisecond
)

const (
	// dialWait bounds the steps of connecting to one server, of which there are
	// two: the dial, and the handshake.
	dialWait = 2 * time.Second
	// connectWait bounds one try of all servers.
	connectWait = 5 * time.Second
	// patience is the longest pause between the tries of a patient link.
	patience = 2 * time.Second
)

// Link says how to reach the servers of a fleet, and as whom.
type Link struct {
	URLs string // comma separated
	Name string // shown by the server
	// Agent is the id of an agent, whose inbox is its own; empty for a controller.
	Agent string

	Creds string // file of a user's JWT and key
	Nkey  string // file of a seed
	Token string
	User  string // name:password
	CA    string // file of certificates that vouch for the servers
	Cert  string // file of the own certificate, with Key
	Key   string
	// Patient waits until the context ends for servers that do not answer yet.
	// What no waiting mends, such as a wrong password, is an error all the same.
	Patient  bool
	Messages func(text string) // told about waiting, lost and regained connections; may be nil
	// Reconnected is called each time a lost connection stands again; may be nil.
	Reconnected func()
}

// InProcess connects to a server inside this process, without a socket.
func InProcess(name string, server nats.InProcessConnProvider) (*Bus, error) {
	quiet := func(*nats.Conn, *nats.Subscription, error) {} // in place of one that prints
	nc, err := nats.Connect("", nats.Name(name), nats.InProcessServer(server), nats.ErrorHandler(quiet))
	if err != nil {
		return nil, fmt.Errorf("connect in process: %w", err)
	}
	return open(nc, name)
}

// Connect dials the servers of a fleet, and says in one line what to do when
// that does not work. Unless the link is patient it returns within connectWait.
func Connect(ctx context.Context, l Link) (*Bus, error) {
	options, err := l.options()
	if err != nil {
		return nil, l.hide(err)
	}
	for pause := reconnectWait; ; pause = min(2*pause, patience) {
		nc, err := nats.Connect(l.URLs, options...)
		if err == nil {
			return l.open(nc)
		}
		if !l.Patient || !passes(err) {
			return nil, l.hide(fmt.Errorf("connect to NATS at %s: %w", redact(l.URLs), l.explain(err)))
		}
		if pause == reconnectWait {
			l.say("waiting for NATS at " + redact(l.URLs))
		}
		select {
		case <-time.After(pause + rand.N(reconnectJitter)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// open refuses a server whose messages are too small: what does not fit is lost.
func (l *Link) open(nc *nats.Conn) (*Bus, error) {
	if most := nc.MaxPayload(); most < wire.MinPayload {
		nc.Close()
		return nil, fmt.Errorf("the NATS server at %s takes messages of %d bytes at most, and results need up to %d: set max_payload: %dMB in its configuration",
			redact(l.URLs), most, wire.MinPayload, wire.MaxPayload>>20)
	}
	return open(nc, l.Name)
}

func (l *Link) options() ([]nats.Option, error) {
	servers := strings.Count(l.URLs, ",") + 1
	options := []nats.Option{nats.Name(l.Name), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut),
		nats.Timeout(min(dialWait, connectWait/time.Duration(2*servers))),
		// A message that waits for a lost connection would be old news when it
		// arrives: fail at once instead.
		nats.ReconnectBufSize(-1),
		// A server whose users are just being changed is tried again.
		nats.IgnoreAuthErrorAbort()}
	if l.Agent != "" {
		options = append(options, nats.CustomInboxPrefix(wire.InboxPrefix(l.Agent)))
	}
	credentials, err := l.credentials()
	if err != nil {
		return nil, err
	}
	return append(append(options, credentials...), l.talk()...), nil
}

func (l *Link) say(text string) {
	if l.Messages != nil {
		l.Messages(text)
	}
}

// talk tells whoever listens how the connection fares. What is said again and
// again while a server is away, or refuses us, is said once.
func (l *Link) talk() []nats.Option {
	var mu sync.Mutex
	last := ""
	say := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if text != last {
			l.say(text)
		}
		last = text
	}
	return []nats.Option{
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				say("lost the connection to NATS: " + l.hide(err).Error())
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			say("connected to NATS again")
			if l.Reconnected != nil {
				l.Reconnected()
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { say("NATS: " + l.hide(err).Error()) }),
	}
}
