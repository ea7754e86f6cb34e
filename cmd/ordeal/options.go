package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"ordeal/agent/wire"
	"ordeal/cmd/internal/cli"
	"ordeal/controller"
	"ordeal/controller/plan"
	"ordeal/controller/policy"
	"ordeal/controller/report"
	"ordeal/controller/result"
	"ordeal/controller/spec"
	"ordeal/metrics/price"
)

// options reads the files a run needs.
func (f *scanFlags) options(s *spec.Spec, command string, words []string, streams Streams) (controller.Options, error) {
	opt := controller.Options{Spec: *s, Command: command, Version: cli.Version, Words: words,
		Warnings: func(text string) { fmt.Fprintln(streams.Err, "warning: "+text) }}
	var err error
	if opt.Policy, err = loadPolicy(s.Policy, opt.Warnings); err != nil {
		return opt, err
	}
	opt.Prices, err = loadPrices(s.PriceFile)
	return opt, errors.Join(err, quotedPath(s), f.fleet.options(&opt))
}

func loadPolicy(path string, warn func(string)) (*policy.Policy, error) {
	if path == "" {
		return policy.Default(), nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read --policy: %w", err)
	}
	p, warnings, err := policy.Parse(path, data)
	for _, w := range warnings {
		warn(w)
	}
	return p, err
}

func loadPrices(path string) ([]*price.Table, error) {
	if path == "" {
		return []*price.Table{price.Builtin()}, nil
	}
	own, err := price.Load(path)
	return []*price.Table{own, price.Builtin()}, err
}

// quotedPath catches a path with a space that lost its quotes: the words
// rejoined are a file, the first word alone is not.
func quotedPath(s *spec.Spec) error {
	t := &s.Target
	if t.Transport != wire.Stdio || len(t.Command) < 2 {
		return nil
	}
	if _, err := os.Stat(t.Command[0]); err == nil {
		return nil
	}
	whole := strings.Join(t.Command, " ")
	if _, err := os.Stat(whole); err != nil {
		return nil
	}
	return fmt.Errorf("target %q is a path with a space: quote it inside the target, as in \"'%s'\"", whole, whole)
}

// referencesOnly refuses secrets that would travel inside work units.
func referencesOnly(t *wire.Target) error {
	const want = "with --nats write a reference such as '${env:TOKEN}', which the agent resolves"
	for _, h := range t.Headers {
		if !strings.Contains(h.Value, "$") {
			return fmt.Errorf("--header %s holds a value: %s", h.Name, want)
		}
	}
	for _, e := range t.Env {
		if !strings.Contains(e.Value, "$") {
			return fmt.Errorf("--env %s holds a value: %s", e.Name, want)
		}
	}
	if t.APIKey != "" && !strings.Contains(t.APIKey, "$") {
		return errors.New("--api-key holds a value: " + want)
	}
	if u, err := url.Parse(t.Endpoint); err == nil && u.User != nil && !strings.Contains(u.User.String(), "$") {
		return errors.New("the target's URL holds credentials: " + want)
	}
	return nil
}

// unmeasured reports a run without numbers: a refusal is a document too.
func (f *scanFlags) unmeasured(err error, streams Streams) error {
	var refusal *plan.Refusal
	var dead *controller.Unmeasurable
	doc := &result.Refusal{SchemaVersion: result.SchemaVersion, Refused: true, Target: controller.Target(&f.spec)}
	switch {
	case errors.As(err, &refusal):
		doc.Reason, doc.Remedy = refusal.Reason, refusal.Remedy
	case errors.As(err, &dead):
		doc.Reason, doc.Remedy = dead.Message, dead.Remedy
	default:
		doc.Reason = err.Error()
	}
	if f.jsonOut != "" {
		var files outputs
		files.addRefusal(f.jsonOut, doc)
		if _, werr := files.write(nil); werr != nil {
			err = errors.Join(err, werr)
		}
	}
	if f.json {
		if werr := report.RefusalJSON(streams.Out, doc); werr != nil {
			err = errors.Join(err, werr)
		}
	}
	return &cli.Exit{Code: cli.Code(err), Err: err}
}
