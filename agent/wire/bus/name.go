package bus

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"ordeal/agent/wire"
)

// Bearer asks who bears an agent's name; ErrGone when nobody does. One that hangs
// does not answer.
func (b *Bus) Bearer(ctx context.Context, name string) (wire.Bearer, error) {
	who, err := request[wire.Bearer](ctx, b, wire.NameSubject(name), wire.Request{V: wire.Version, Kind: wire.Ping})
	if err != nil {
		return who, fmt.Errorf("ask for the agent %s: %w", name, err)
	}
	return who, nil
}

// Bearers calls handle for each process that says before ctx ends that it bears
// the name.
func (b *Bus) Bearers(ctx context.Context, name string, handle func(wire.Bearer)) error {
	sub, err := b.nc.SubscribeSync(b.nc.NewInbox())
	if err != nil {
		return fmt.Errorf("ask for the agents %s: %w", name, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // an error means that the connection is gone
	data, err := json.Marshal(wire.Request{V: wire.Version, Kind: wire.Ping})
	if err == nil {
		err = b.nc.PublishRequest(wire.NameSubject(name), sub.Subject, data)
	}
	if err != nil {
		return fmt.Errorf("ask for the agents %s: %w", name, err)
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil // all that came until now
		}
		var who wire.Bearer
		if json.Unmarshal(m.Data, &who) == nil {
			handle(who)
		}
	}
}

// OnName answers those who ask for a name, whatever version they speak.
func (b *Bus) OnName(name string, who func() wire.Bearer) (stop func(), err error) {
	return subscribe(b, wire.NameSubject(name), func(m *nats.Msg, _ wire.Request) { respond(m, who()) })
}
