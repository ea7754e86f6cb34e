package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/report"
)

func (c *runsCmd) newShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show the record of a run: who leads it, how far it is, its gangs, how it ended",
		Example: `  ordeal runs show last --nats nats://127.0.0.1:4222
  ordeal runs show 20261201-101500-0a1b2c3d4e --json`,
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withRun(cmd, args[0], func(b *bus.Bus, r *wire.Run) error {
				seen := lookAtRuns(cmd.Context(), b, []*wire.Run{r})[0]
				if c.asJSON {
					return encodeIndented(c.streams.Out, runFile{SchemaVersion: 1, Run: seen.doc(true)})
				}
				return printRun(c.streams.Out, &seen)
			})
		},
	}
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print JSON")
	return cmd
}

// clock is a time as lists show it.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func printRun(w io.Writer, r *seenRun) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		if text := printable(fmt.Sprintf(format, args...)); text != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, text)
		}
	}
	line("run", "%s", r.ID)
	line("state", "%s", r.state())
	line("reason", "%s", r.Reason)
	line("verdict", "%s", r.Verdict)
	line("target", "%s", r.Target)
	line("command", "ordeal %s", quoted(r.Words))
	line("version", "%s", r.Version)
	line("started", "%s", clock(r.Started))
	line("led for", "%v", r.Active.Round(100*time.Millisecond))
	line("controller", "%s, generation %d", r.Holder, r.Generation)
	line("lease", "%v, renewed %d times", r.TTL, r.Renewals)
	line("stage", "%s", r.Stage)
	line("stage units", "%s", r.units())
	line("plan", "%s", r.Plan)
	for i := range r.Gangs {
		line("gang", "%s", gangText(&r.Gangs[i]))
	}
	return table.Flush()
}

func gangText(g *wire.GangRecord) string {
	text := fmt.Sprintf("%s, attempt %d: %s", g.Stage, g.Attempt, strings.Join(g.Agents, ", "))
	if len(g.Lost) > 0 {
		text += "; lost " + strings.Join(g.Lost, ", ")
	}
	return text
}

// quoted joins words into a line that can be pasted into a shell.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = report.ShellQuote(w)
	}
	return strings.Join(all, " ")
}

// runsFile and runFile are what --json prints; fields are only added.
type runsFile struct {
	SchemaVersion int      `json:"schema_version"`
	Runs          []runDoc `json:"runs"`
}

type runFile struct {
	SchemaVersion int    `json:"schema_version"`
	Run           runDoc `json:"run"`
}

// runDoc is the record of a run; order is the controller's own and not stable.
type runDoc struct {
	ID         string            `json:"id"`
	State      string            `json:"state"`      // running, finished, stopped, failed
	Controller string            `json:"controller"` // of a running run: answers, silent, gone
	Holder     string            `json:"holder"`
	Generation uint64            `json:"generation"`
	TTLS       float64           `json:"ttl_s"`
	Renewals   uint64            `json:"renewals"`
	Command    string            `json:"command"`
	Words      []string          `json:"words"`
	Target     string            `json:"target"`
	Version    string            `json:"version"`
	Started    time.Time         `json:"started"`
	ActiveS    float64           `json:"active_s"`
	Stage      string            `json:"stage"`
	Done       int               `json:"done"`
	Units      int               `json:"units"`
	Plan       string            `json:"plan"`
	Granted    int64             `json:"granted"` // calls of a budget
	Gangs      []wire.GangRecord `json:"gangs"`
	Reason     string            `json:"reason"`
	Report     bool              `json:"report"` // there is one
	Verdict    string            `json:"verdict"`
	Order      json.RawMessage   `json:"order,omitempty"`
}

// doc is the record for --json; all of it with its order.
func (r *seenRun) doc(all bool) runDoc {
	d := runDoc{ID: r.ID, State: string(r.State), Controller: string(r.controller), Holder: r.Holder, Generation: r.Generation, TTLS: r.TTL.Seconds(),
		Renewals: r.Renewals, Command: r.Command, Words: append([]string{}, r.Words...), Target: r.Target, Version: r.Version, Started: r.Started.UTC(),
		ActiveS: r.Active.Seconds(), Stage: r.Stage, Done: r.Done, Units: r.Units, Plan: r.Plan, Granted: r.Granted,
		Gangs: append([]wire.GangRecord{}, r.Gangs...), Reason: r.Reason, Report: r.Document != "", Verdict: r.Verdict}
	if all {
		d.Order = r.Order
	}
	return d
}

func printRunsJSON(w io.Writer, runs []seenRun) error {
	file := runsFile{SchemaVersion: 1, Runs: []runDoc{}}
	for i := range runs {
		file.Runs = append(file.Runs, runs[i].doc(false))
	}
	return encodeIndented(w, file)
}

func encodeIndented(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(v)
}
