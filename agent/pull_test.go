package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
)

// dropQueue deletes the queue of the default pool.
func (w *world) dropQueue() {
	w.t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(w.srv))
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		err = js.DeleteConsumer(w.t.Context(), wire.UnitStream, wire.ConsumerName(queueName))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// Why no unit comes is said once for each reason, and work goes on once there is a
// queue again.
func TestQueueThatIsGoneIsSaidOnce(t *testing.T) {
	w := newWorld(t)
	log := &lines{}
	w.agent(Options{ID: "a1", Log: log.add})
	w.publish(mockUnit("u1", 10))
	w.result()
	w.dropQueue()
	eventually(t, "it to say that there is no queue", func() bool { return strings.Contains(log.text(), "no such queue") })
	time.Sleep(5 * pullAgain) // some more tries
	if err := w.bus.OpenQueue(t.Context(), queueName); err != nil {
		t.Fatal(err)
	}
	w.publish(mockUnit("u2", 10))
	for w.result().Unit != "u2" { // u1 comes again when its queue was gone before it was acknowledged
	}
	for line, n := range count(log.text()) {
		if n > 1 || strings.HasPrefix(line, "queue ") && !strings.HasPrefix(line, "queue "+queueName+": ask for a unit: ") {
			t.Errorf("%d times %q, want each reason once, with its queue", n, line)
		}
	}
}

func count(text string) map[string]int {
	n := map[string]int{}
	for line := range strings.SplitSeq(text, "\n") {
		n[line]++
	}
	return n
}

// A unit of another release is left to others, again and again, and spoken of once.
func TestUnitOfAnotherReleaseIsSaidOnce(t *testing.T) {
	w := newWorld(t)
	log := &lines{}
	w.agent(Options{ID: "a1", Log: log.add})
	future := mockUnit("future", 10)
	future.V = wire.Version + 1
	w.publish(future)
	eventually(t, "it to say so", func() bool {
		return strings.Contains(log.text(), "a unit is left to other agents: other protocol version")
	})
	for i := range 3 { // units that are worked in between are no news
		w.publish(mockUnit("u"+string(rune('1'+i)), 10))
		w.result()
		time.Sleep(wire.Heartbeat) // it comes again after that
	}
	if text := log.text(); strings.Count(text, "left to other agents") != 1 || !strings.Contains(text, "run the same release everywhere") {
		t.Errorf("log:\n%s\nwant it once, and what to do", text)
	}
}

func TestReasonsAreSaidAgainLater(t *testing.T) {
	r, now := reasons{}, time.Now()
	for _, step := range []struct {
		text  string
		after time.Duration
		want  bool
	}{{"a", 0, true}, {"a", time.Second, false}, {"b", time.Second, true}, {"a", reasonAgain - 1, false}, {"a", reasonAgain, true}} {
		if got := r.news(step.text, now.Add(step.after)); got != step.want {
			t.Errorf("%s after %v: news %v, want %v", step.text, step.after, got, step.want)
		}
	}
	for i := range 10 * keptReasons {
		r.news(time.Duration(i).String(), now)
	}
	if len(r) > keptReasons {
		t.Errorf("%d reasons kept, want at most %d", len(r), keptReasons)
	}
}
