// Package prom shows a process to Prometheus: it is the only user of the
// Prometheus client library.
//
// In go tallies and events, as they happen; out come series, when somebody
// scrapes. An [Agent] and a [Controller] hold the series of their side, [Serve]
// puts them behind /metrics, /healthz and /readyz:
//
//	agent       Operations, UnitStarted, Lease, …  ─┐
//	                                                ├─ Serve ── GET /metrics, /healthz, /readyz
//	controller  RunStarted, Fleet, GangStarted, …  ─┘
//
// Nothing here is global: each value has a registry of its own. The methods of
// a nil *Agent and a nil *Controller do nothing, so that whoever is not watched
// needs no ifs. All methods may be called from several goroutines.
//
// # Names
//
// Everything of ours begins with ordeal_, is in base units (seconds) and ends
// in _total where it only grows. A test holds the names against the linter of
// Prometheus, and deploy/ against the names.
//
// # Labels
//
// A label value comes from a fixed list (outcome, state, reason, command) or
// describes the process, once, in an info series (agent, zone, pool, version,
// run). Nothing of a target is ever a label: no URL, no tool, no argument, no
// error text. What does not look like a name is replaced, see label.go. Which
// agent a series is from is the instance label of the scraper;
// ordeal_agent_info has the names to join with.
//
// # Durations
//
// A histogram of durations is exposed twice in one metric: as native buckets of
// schema 4 (each 4.4 % wider than the one before), which a scrape in protobuf
// carries, and as classic buckets, which a scrape in text carries as well.
// Values come in as a [ordeal/metrics.Dist] some times per second; a call costs
// nothing here.
package prom
