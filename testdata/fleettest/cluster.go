package fleettest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	clusterWait = 30 * time.Second // until a new cluster can place replicas; about 3 s on two cores
	pollEvery   = 50 * time.Millisecond
)

// StartCluster starts n servers with routes on loopback, named n1, n2, …, and
// returns when JetStream can place a stream with n replicas.
//
// The servers do not tell clients of each other: a client knows the URLs it was
// given (ClusterURL for all) and cannot get around a Cut.
func StartCluster(t testing.TB, n int) []*NATS {
	t.Helper()
	routes := make([]string, n)
	for i := range routes {
		routes[i] = loopback(freePort(t))
	}
	nodes := make([]*NATS, n)
	for i := range nodes {
		nodes[i] = StartNATS(t, NATSOptions{Name: fmt.Sprintf("n%d", i+1), Config: clusterBlock(i, routes)})
	}
	if err := waitReplicas(t.Context(), nodes); err != nil {
		t.Fatalf("fleettest: cluster: %v", err)
	}
	return nodes
}

func clusterBlock(self int, routes []string) string {
	var urls []string
	for i, r := range routes {
		if i != self {
			urls = append(urls, fmt.Sprintf("%q", "nats://"+r))
		}
	}
	return fmt.Sprintf("cluster {\n  name: fleettest\n  listen: %q\n  no_advertise: true\n  routes: [%s]\n}", routes[self], strings.Join(urls, ", "))
}

// ClusterURL is the URLs of all nodes, as --nats takes them.
func ClusterURL(nodes []*NATS) string {
	urls := make([]string, len(nodes))
	for i, n := range nodes {
		urls[i] = n.URL()
	}
	return strings.Join(urls, ",")
}

// Leader is the node that leads a stream. It waits for an election, which takes
// up to 10 s after the last leader's death.
func Leader(t testing.TB, nodes []*NATS, stream string) *NATS {
	t.Helper()
	var leader *NATS
	err := onCluster(t.Context(), nodes, func(ctx context.Context, js jetstream.JetStream) error {
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		cluster := s.CachedInfo().Cluster
		if cluster == nil || cluster.Leader == "" {
			return fmt.Errorf("stream %s has no leader", stream)
		}
		i := slices.IndexFunc(nodes, func(n *NATS) bool { return n.Name() == cluster.Leader })
		if i < 0 {
			return fmt.Errorf("stream %s is led by %s, which is none of these nodes", stream, cluster.Leader)
		}
		leader = nodes[i]
		return nil
	})
	if err != nil {
		t.Fatalf("fleettest: %v", err)
	}
	return leader
}

// waitReplicas places a stream on every node: an answer about the account alone
// says that there is a meta leader, not that it knows all peers.
func waitReplicas(ctx context.Context, nodes []*NATS) error {
	probe := jetstream.StreamConfig{Name: "FLEETTEST_PROBE", Subjects: []string{"fleettest.probe"}, Storage: jetstream.MemoryStorage, Replicas: len(nodes)}
	return onCluster(ctx, nodes, func(ctx context.Context, js jetstream.JetStream) error {
		if _, err := js.AccountInfo(ctx); err != nil {
			return err
		}
		if _, err := js.CreateStream(ctx, probe); err != nil {
			return err
		}
		return js.DeleteStream(ctx, probe.Name)
	})
}

// onCluster tries until it works or clusterWait is over, and then says what the
// last try said.
func onCluster(ctx context.Context, nodes []*NATS, try func(context.Context, jetstream.JetStream) error) error {
	nc, err := nats.Connect(ClusterURL(nodes), nats.MaxReconnects(-1), nats.ReconnectWait(pollEvery))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clusterWait)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		once, done := context.WithTimeout(ctx, 2*time.Second)
		err := try(once, js)
		done()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", clusterWait, err)
		}
	}
}
