package wire

// ConsumerName is the shared consumer of a queue, from which its agents pull.
func ConsumerName(queue string) string {
	if queue == "*" {
		return queue
	}
	return "pool-" + queue
}

// RegistrySubject is where an agent writes its entry of the fleet registry: a
// key of AgentBucket, as NATS lays key-value buckets out (ADR-8).
func RegistrySubject(agent string) string { return "$KV." + AgentBucket + "." + agent }

// APIPrefix is where an agent finds the JetStream API when agents have an
// account of their own on the NATS server, which imports the API's two subjects
// that they need: there, a reply subject cannot name what its sender may not
// publish to. See deploy/nats/nats.conf.
const APIPrefix = "ordeal.v1.js"

// Permissions are the subjects that an agent must be allowed to publish and to
// subscribe to on the NATS server, and the least it can work with. It must be
// allowed to answer requests too (allow_responses): one answer each, within
// PrepareWait, which is shorter than the server's default of two minutes.
//
// What is not among them is refused: to hand units out, to read results, runs
// or other agents' entries, to speak as another agent or as a controller, to
// read another's inbox, and to change streams or consumers.
//
// "*" stands for any agent, for replicas that share one user and can then speak
// as each other, and for the queue of any pool.
func Permissions(agent string, queues []string) (publish, subscribe []string) {
	for _, q := range queues {
		consumer := UnitStream + "." + ConsumerName(q)
		publish = append(publish,
			"$JS.API.CONSUMER.INFO."+consumer,
			"$JS.API.CONSUMER.MSG.NEXT."+consumer,
			APIPrefix+".CONSUMER.INFO."+consumer,
			APIPrefix+".CONSUMER.MSG.NEXT."+consumer,
			"$JS.ACK."+consumer+".>",
			"$JS.ACK.*.*."+consumer+".>", // of servers that put their domain and account in front
		)
	}
	publish = append(publish,
		RegistrySubject(agent),
		ResultSubject("*", agent, "*"),
		ProgressSubject("*", agent),
		EventSubject("*", agent),
		LeaseSubject("*", agent),
		NameSubject(agent),
	)
	return publish, []string{InboxPrefix(agent) + ".>", AgentSubject(agent), NameSubject(agent), ControlSubject("*")}
}
