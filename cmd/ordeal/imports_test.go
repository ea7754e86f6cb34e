package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowed says which trees of ours a tree may import besides itself; longest
// prefix decides. docs/architecture.md has the reasons.
var allowed = map[string][]string{
	"metrics":             {},
	"agent/pace":          {},
	"faultproxy":          {"metrics"},
	"faultproxy/schedule": {"metrics"},
	"agent/wire":          {"metrics", "faultproxy/schedule"},
	"agent/workload":      {"metrics", "agent/wire", "faultproxy/schedule"},
	"agent":               {"metrics", "faultproxy", "agent"},
	"controller":          {"metrics", "agent/wire", "agent/pace", "agent/workload", "faultproxy/schedule", "controller"},
	"controller/result":   {"metrics"},
	"controller/report":   {"metrics", "controller/result"},
	"controller/policy":   {"metrics", "controller/result", "controller/spec"},
	"cmd":                 {"metrics", "agent", "controller", "faultproxy", "cmd/internal"},
	"testdata":            {},
}

// only says which packages alone may use a foreign module.
var only = map[string][]string{
	"github.com/nats-io/nats.go":        {"agent/wire/bus"},
	"github.com/nats-io/nats-server/v2": {"cmd/internal/fleet", "testdata/fleettest/natsd"},
	"github.com/prometheus":             {"metrics/prom"},
	"github.com/spf13/cobra":            {"cmd/ordeal", "cmd/ordeal-agent", "cmd/internal/agentcmd"},
}

// TestImports parses every file itself: a test that asks the go command would be
// cached and stay green.
func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "venv" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		checkImports(t, path, filepath.ToSlash(pkg))
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("looked at %d files, err %v: the check proves nothing", files, err)
	}
}

func checkImports(t *testing.T, path, pkg string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	tree := longest(pkg)
	for _, imp := range file.Imports {
		name, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			t.Error(err)
			continue
		}
		if ours, ok := strings.CutPrefix(name, "ordeal/"); ok && !under(ours, append(allowed[tree], tree)) {
			t.Errorf("%s: %s must not import %s", path, pkg, ours)
		}
		for module, users := range only {
			if under(name, []string{module}) && !slices.Contains(users, pkg) && !strings.HasSuffix(pkg, "test") {
				t.Errorf("%s: only %v may import %s", path, users, name)
			}
		}
	}
}

func longest(pkg string) string {
	best := ""
	for tree := range allowed {
		if under(pkg, []string{tree}) && len(tree) > len(best) {
			best = tree
		}
	}
	return best
}

func under(pkg string, trees []string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool { return pkg == tree || strings.HasPrefix(pkg, tree+"/") })
}
