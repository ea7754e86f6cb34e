package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"ordeal/agent/wire/bus"
	"ordeal/controller/roster"
)

// printAgents prints the list; verbose with what does not fit 80 columns.
func printAgents(w io.Writer, agents []seenAgent, now time.Time, verbose bool) error {
	if len(agents) == 0 {
		return nil
	}
	rows := [][]string{{"NAME", "STATE", "POOLS", "LABELS", "UNITS", "LOAD", "CLOCK", "SEEN", "WHY"}}
	for i := range agents {
		a := &agents[i]
		rows = append(rows, []string{a.ID, a.State, strings.Join(a.Pools, ","), labelText(a.Labels), fmt.Sprint(a.Units), a.load(), a.clock(), a.seen(now), a.why()})
	}
	if verbose {
		rows[0] = append(rows[0], "VERSION", "IN HAND")
		for i := range agents {
			rows[i+1] = append(rows[i+1], agents[i].Version, agents[i].inHand())
		}
	}
	_, err := w.Write(tableText(rows))
	return err
}

func labelText(labels map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, key+"="+labels[key])
	}
	return strings.Join(all, ",")
}

// load is how much of its cores the agent uses.
func (a *seenAgent) load() string {
	if a.Load.Cores == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f/%d", float64(a.Load.CPUMilli)/1000, a.Load.Cores)
}

// inHand is the unit the agent works, with its run.
func (a *seenAgent) inHand() string {
	if a.Load.Unit == "" {
		return ""
	}
	return a.Load.Run + "/" + a.Load.Unit
}

func (a *seenAgent) clock() string {
	if !a.Clocked {
		return ""
	}
	return fmt.Sprintf("%+.2f ±%.2f ms", ms(a.Offset), ms(a.Bound))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// seen is how long ago the agent was heard of. The time is the server's: a clock
// that is behind it shows no negative age.
func (a *seenAgent) seen(now time.Time) string {
	return max(0, now.Sub(a.At)).Round(100 * time.Millisecond).String()
}

// why says why the agent would get no work, or what is wrong with it.
func (a *seenAgent) why() string {
	switch {
	case a.Incompatible != "":
		return a.Incompatible
	case a.State == roster.Lost:
		return bus.ErrGone.Error()
	case a.clockErr != nil:
		return a.clockErr.Error()
	}
	return ""
}

// printable replaces what could steer a terminal: names and labels are the
// agents' own.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// agentsDoc is the list as JSON; fields are only added.
type agentsDoc struct {
	SchemaVersion int        `json:"schema_version"`
	Agents        []agentDoc `json:"agents"`
}

type agentDoc struct {
	ID       string            `json:"id"`
	State    string            `json:"state"` // idle, busy, draining, incompatible, lost
	Reason   string            `json:"reason,omitempty"`
	Pools    []string          `json:"pools"`
	Labels   map[string]string `json:"labels"`
	Version  string            `json:"version"`
	Protocol int               `json:"protocol"`
	Digest   string            `json:"schedule_digest"`
	Capacity int               `json:"capacity"`
	Units    int64             `json:"units"`
	Run      string            `json:"run,omitempty"`
	Unit     string            `json:"unit,omitempty"`
	CPUMilli int64             `json:"cpu_milli"`
	Cores    int               `json:"cores"`
	Clock    *clockDoc         `json:"clock"` // null: not measured
	Seen     time.Time         `json:"seen"`
}

type clockDoc struct {
	OffsetUS float64 `json:"offset_us"` // the agent's clock minus this machine's
	BoundUS  float64 `json:"bound_us"`
}

func printAgentsJSON(w io.Writer, agents []seenAgent) error {
	doc := agentsDoc{SchemaVersion: 1, Agents: []agentDoc{}}
	for i := range agents {
		a := &agents[i]
		d := agentDoc{ID: a.ID, State: a.State, Reason: a.why(), Pools: a.Pools, Labels: a.Labels, Version: a.Version, Protocol: a.V, Digest: a.Digest, Capacity: a.Capacity,
			Units: a.Units, Run: a.Load.Run, Unit: a.Load.Unit, CPUMilli: a.Load.CPUMilli, Cores: a.Load.Cores, Seen: a.At.UTC()}
		if d.Pools == nil {
			d.Pools = []string{}
		}
		if d.Labels == nil {
			d.Labels = map[string]string{}
		}
		if a.Clocked {
			d.Clock = &clockDoc{OffsetUS: float64(a.Offset) / 1000, BoundUS: float64(a.Bound) / 1000}
		}
		doc.Agents = append(doc.Agents, d)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(doc)
}
