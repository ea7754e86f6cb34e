package fleettest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A stream of three replicas outlives the death of its leader: what was stored
// is there, and more can be stored; and the dead node comes back to it.
func TestClusterSurvivesItsLeader(t *testing.T) {
	nodes := StartCluster(t, 3)
	js := connect(t, ClusterURL(nodes))
	ctx := within(t, 45*time.Second)
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		publishOnce(ctx, t, js, i)
	}
	dead := Leader(t, nodes, "S")
	dead.Kill()
	for i := range 50 {
		publishOnce(ctx, t, js, 50+i)
	}
	if heir := Leader(t, nodes, "S"); heir == dead {
		t.Errorf("%s still leads", heir.Name())
	}
	if got := stored(t, js, "S"); got != 100 {
		t.Errorf("%d messages, want 100", got)
	}
	dead.Restart(t)
	if got := stored(t, connect(t, dead.URL()), "S"); got != 100 {
		t.Errorf("%d messages by way of the node that was dead, want 100", got)
	}
}

// publishOnce tries until the message is stored; its id keeps a second try from
// storing it twice.
func publishOnce(ctx context.Context, t *testing.T, js jetstream.JetStream, i int) {
	t.Helper()
	for {
		try, done := context.WithTimeout(ctx, 2*time.Second)
		_, err := js.Publish(try, "s", fmt.Append(nil, i), jetstream.WithMsgID(fmt.Sprint(i)))
		done()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}
