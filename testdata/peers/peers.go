// Package peers gives tests the commands of servers and client libraries that
// others wrote: reference MCP servers from npm and PyPI, the official LLM SDKs.
//
// They are pinned in package-lock.json and constraints.txt and installed by
// install.sh (make peers). A test whose peer is missing fails and says so; it is
// never skipped, since a suite that skips its peers proves nothing about them.
package peers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// remedy ends every message about a missing peer.
const remedy = "run make peers"

// Node returns the command line of a reference server's npm package, such as
// "server-everything", to which arguments may be appended.
func Node(t testing.TB, server string) []string {
	t.Helper()
	return NodeBin(t, "@modelcontextprotocol/"+server)
}

// NodeBin returns the command line of the first program of any installed npm
// package.
func NodeBin(t testing.TB, pkg string) []string {
	t.Helper()
	root := filepath.Join(NodeModules(t), filepath.FromSlash(pkg))
	raw, err := os.ReadFile(filepath.Join(root, "package.json"))
	if err != nil {
		t.Fatalf("peers: npm package %s is not installed (%v): %s", pkg, err, remedy)
	}
	var manifest struct {
		Bin json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatalf("peers: %s: package.json: %v", pkg, err)
	}
	script := firstBin(manifest.Bin)
	if script == "" {
		t.Fatalf("peers: npm package %s has no program", pkg)
	}
	return []string{lookPath(t, "node"), filepath.Join(root, script)}
}

// firstBin reads the bin field, a path or a map of names to paths.
func firstBin(raw json.RawMessage) string {
	var path string
	if json.Unmarshal(raw, &path) == nil {
		return path
	}
	var byName map[string]string
	if json.Unmarshal(raw, &byName) != nil {
		return ""
	}
	first := ""
	for name := range byName {
		if first == "" || name < first {
			first = name
		}
	}
	return byName[first]
}

// NodeModules is the node_modules folder; a script beside it imports the
// packages by name.
func NodeModules(t testing.TB) string {
	t.Helper()
	return installed(t, "node_modules", "package.json", "package-lock.json")
}

// NodeScript returns a command that runs the source of an ES module which
// imports installed packages.
func NodeScript(t testing.TB, source string) []string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(NodeModules(t)), "node_modules", ".scripts")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("peers: %v", err)
	}
	sum := sha256.Sum256([]byte(source))
	path := filepath.Join(dir, hex.EncodeToString(sum[:8])+".mjs")
	if old, err := os.ReadFile(path); err != nil || string(old) != source {
		writeAtomically(t, path, source)
	}
	return []string{lookPath(t, "node"), path}
}

// writeAtomically lets tests of several packages write the same script at once.
func writeAtomically(t testing.TB, path, source string) {
	t.Helper()
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		t.Fatalf("peers: %v", err)
	}
	_, werr := f.WriteString(source)
	cerr := f.Close()
	if werr != nil || cerr != nil {
		t.Fatalf("peers: %s: %v %v", f.Name(), werr, cerr)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		t.Fatalf("peers: %v", err)
	}
}

// Python returns the command line of a program of the virtual environment, such
// as "mcp-server-git".
func Python(t testing.TB, program string) []string {
	t.Helper()
	path := filepath.Join(venv(t), "bin", program)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("peers: python program %s is not installed (%v): %s", program, err, remedy)
	}
	return []string{path}
}

// PythonScript returns a command that runs source with the environment's
// interpreter.
func PythonScript(t testing.TB, source string) []string {
	t.Helper()
	return []string{filepath.Join(venv(t), "bin", "python"), "-c", source}
}

func venv(t testing.TB) string {
	t.Helper()
	return installed(t, "venv", "requirements.txt", "constraints.txt")
}

// installed checks that a folder bears the stamp install.sh leaves at its end,
// so that a half or outdated installation is not taken for a good one.
func installed(t testing.TB, folder string, pins ...string) string {
	t.Helper()
	_, self, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(self) {
		t.Fatalf("peers: source folder unknown (built with -trimpath?): run the tests without it")
	}
	dir := filepath.Dir(self)
	stamp, err := os.ReadFile(filepath.Join(dir, folder, ".peers"))
	if err != nil {
		t.Fatalf("peers: %s is not installed: %s", folder, remedy)
	}
	sum := exec.Command("cksum")
	sum.Stdin = strings.NewReader(contents(t, dir, pins))
	want, err := sum.Output()
	if err != nil {
		t.Fatalf("peers: cksum: %v", err)
	}
	if string(want) != string(stamp) {
		t.Fatalf("peers: %s holds other versions than pinned: %s", folder, remedy)
	}
	return filepath.Join(dir, folder)
}

func contents(t testing.TB, dir string, files []string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range files {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatalf("peers: %v", err)
		}
		all.Write(raw)
	}
	return all.String()
}

func lookPath(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("peers: %v: install node 20 or later, then %s", err, remedy)
	}
	return path
}
