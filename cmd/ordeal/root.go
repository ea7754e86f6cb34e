package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ordeal/cmd/internal/cli"
	"ordeal/controller/spec"
)

// Streams are where a command writes: results to Out, talk to Err.
type Streams struct {
	Out, Err io.Writer
}

// terminal reports whether w is a terminal that takes control sequences.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// colored reports whether w shows colours and its user wants them
// (https://no-color.org).
func colored(w io.Writer) bool { return os.Getenv("NO_COLOR") == "" && terminal(w) }

// run executes one command line.
func run(ctx context.Context, args []string, streams Streams) error {
	root := newRootCmd(streams)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

func newRootCmd(streams Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "ordeal",
		Short: "Load, malformed calls and faults for MCP servers and LLM endpoints",
		Long: `ordeal puts an MCP server or an LLM endpoint through load, malformed calls and
faults and gives a verdict in which every number states its denominator.

Exit codes: 0 measured (and gates passed), 1 measured and the answer is bad,
2 could not measure, 130 interrupted (what was measured is written, marked
partial).`,
		Example:       "  ordeal scan mock:degraded\n  ordeal scan \"npx -y @modelcontextprotocol/server-everything\" --tool echo --tool-args '{\"message\": \"hi\"}'",
		Version:       cli.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.AddCommand(newScanCmd(streams), newLoadCmd(streams), newCICmd(streams), newRunsCmd(streams), newAgentCmd(streams), newAgentsCmd(streams), newPolicyCmd(streams), newReportCmd(streams))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := "see " + cmd.CommandPath() + " --help"
		if cmd.Flags().NArg() > 1 || strings.Contains(err.Error(), "shorthand") {
			hint = "quote a target that has flags of its own, as in " + cmd.CommandPath() + " \"npx -y some-server /tmp\"; " + hint
		}
		return fmt.Errorf("%w; %s", err, hint)
	})
	for _, c := range root.Commands() {
		c.Args = helpfulArgs(c)
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(root, args[0])
	}
	root.Args = cobra.ArbitraryArgs
	return root
}

func unknownCommand(root *cobra.Command, name string) error {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	hint := ""
	if near := spec.Nearest(name, names); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return &cli.Exit{Code: cli.Unmeasured, Err: fmt.Errorf("unknown command %q%s: see ordeal --help", name, hint)}
}

// helpfulArgs turns cobra's count of arguments into a sentence.
func helpfulArgs(c *cobra.Command) cobra.PositionalArgs {
	check := c.Args
	if check == nil {
		return nil
	}
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		if len(args) > 1 {
			return fmt.Errorf("unexpected argument %q: quote a target that has spaces, as in %s \"npx -y some-server /tmp\"", args[1], cmd.CommandPath())
		}
		return fmt.Errorf("%s: %w; usage: %s", cmd.CommandPath(), err, cmd.UseLine())
	}
}
