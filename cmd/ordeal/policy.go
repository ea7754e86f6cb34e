package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ordeal/controller/policy"
)

func newPolicyCmd(streams Streams) *cobra.Command {
	var path string
	var asYAML bool
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Show or check a policy file",
		Example: `  ordeal policy
  ordeal policy --yaml > production.yaml
  ordeal policy --policy production.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asYAML && path != "" {
				return errors.New("--yaml prints the built-in policy and reads no file: give --yaml or --policy, not both")
			}
			if asYAML {
				_, err := streams.Out.Write(policy.DefaultYAML())
				return err
			}
			p, err := loadPolicy(path, func(text string) { fmt.Fprintln(streams.Err, "warning: "+text) })
			if err != nil {
				return err
			}
			return printPolicy(streams.Out, p)
		},
	}
	cmd.Flags().StringVar(&path, "policy", "", "file to show and check (default: the built-in policy)")
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the built-in policy as a file to start from")
	return cmd
}

func printPolicy(w io.Writer, p *policy.Policy) error {
	fmt.Fprintf(w, "policy %s: pass at %g, a failed check caps the score at %g, an absolute one at %g\n", p.Name, p.PassScore, p.FailCap, p.AbsoluteFailCap)
	fmt.Fprintf(w, "decision by %s%s\n\n", p.Decision, map[bool]string{true: ", strict: unproven checks do not pass"}[p.Strict])
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "threshold\tlimit\treads\t")
	var unset []string
	for _, r := range p.Rows() {
		if !r.Set {
			unset = append(unset, r.Key)
			continue
		}
		note := ""
		if r.Absolute {
			note = "absolute"
		}
		if r.Derived != "" {
			note = "unless " + r.Derived + " is measured"
		}
		fmt.Fprintf(tw, "%s\t%s %g %s\t%s\t%s\n", r.Key, r.Direction, r.Value, r.Unit, r.Metric, note)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, key := range unset {
		fmt.Fprintf(w, "%s is not set\n", key)
	}
	return nil
}
