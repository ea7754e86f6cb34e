package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFit(t *testing.T) {
	const enough = 1 << 40
	for _, r := range []struct {
		name   string
		room   room
		wanted int
		want   int
		says   string
	}{
		{"OK", room{files: enough, memory: enough}, 5000, 5000, ""},
		{"Default", room{files: enough, memory: enough}, 0, DefaultCapacity, ""},
		{"Unlimited", room{files: unlimited, memory: unlimited}, 5000, 5000, ""},
		{"LessByFiles", room{files: 1024, memory: enough}, 0, (1024 - ownFiles) / filesPerCaller, ""},
		{"LessByMemory", room{files: enough, memory: ownMemory + 10*perCaller}, 0, 10, ""},
		{"AtLeastOne", room{files: 3, memory: 0}, 0, 1, ""},
		{"Exactly", room{files: 1024, memory: enough}, 448, 448, ""},
		{"TooFewFiles", room{files: 1024, memory: enough}, 449, 0, "capacity 449 needs 1026 open files and the limit is 1024: raise it (ulimit -n 1026, or LimitNOFILE=1026 of the service), or lower --capacity (without a fleet --concurrency) to 448"},
		{"TooLittleMemory", room{files: enough, memory: 512 << 20, memoryOf: "GOMEMLIMIT"}, 5000, 0, "capacity 5000 needs 845 MiB of memory and GOMEMLIMIT leaves 512 MiB: raise it, or lower --capacity (without a fleet --concurrency) to 2867"},
		{"NothingLeft", room{files: enough, memory: -5, memoryOf: "GOMEMLIMIT"}, 1, 0, "leaves 0 MiB"},
		{"Negative", room{files: enough, memory: enough}, -1, 0, "1 or more"},
	} {
		t.Run(r.name, func(t *testing.T) {
			got, err := r.room.fit(r.wanted)
			if got != r.want || (err == nil) != (r.says == "") {
				t.Fatalf("fit = %d, %v; want %d, %q", got, err, r.want, r.says)
			}
			if err != nil && (!strings.Contains(err.Error(), r.says) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("error %q, want %q", err, r.says)
			}
		})
	}
}

// tree writes files by name.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestControlGroups(t *testing.T) {
	root := tree(t, map[string]string{
		"self":                          "4:cpu:/old\n0::/pods/agent\n",
		"old":                           "4:cpu:/old\n",
		"pods/memory.max":               "1000\n",
		"pods/memory.current":           "900\n",
		"pods/memory.stat":              "anon 1\ninactive_file 300\n",
		"pods/agent/memory.max":         "max\n",
		"pods/agent/memory.current":     "5\n",
		"pods/limited/memory.max":       "700\n",
		"pods/limited/memory.current":   "400\n",
		"pods/limited/memory.stat":      "inactive_file 0\n",
		"pods/overdrawn/memory.max":     "50\n",
		"pods/overdrawn/memory.current": "60\n",
	})
	if path, ok := ownGroup(filepath.Join(root, "self")); !ok || path != "/pods/agent" {
		t.Errorf("own group %q, %v", path, ok)
	}
	if path, ok := ownGroup(filepath.Join(root, "old")); ok {
		t.Errorf("own group %q of a system without v2", path)
	}
	for path, want := range map[string]int64{"/pods/agent": 400, "/pods/limited": 300, "/pods/overdrawn": -10} {
		if left, ok := groupLeft(root, path); !ok || left != want {
			t.Errorf("%s leaves %d, %v; want %d", path, left, ok, want)
		}
	}
	if left, ok := groupLeft(t.TempDir(), "/"); ok {
		t.Errorf("a system without groups leaves %d", left)
	}
}

// The machine that runs the test has a limit of each kind that is known.
func TestOwnMachine(t *testing.T) {
	if n, err := openFileLimit(); err != nil || n < 3 {
		t.Errorf("%d files, %v", n, err)
	}
	if n, of := memoryLeft(); n < 1<<20 || of == "" {
		t.Errorf("%d bytes by %q", n, of)
	}
	if n, err := fit(1); n != 1 || err != nil {
		t.Errorf("fit = %d, %v", n, err)
	}
}

// An agent that cannot hold what it is told to does not join.
func TestAgentBeyondItsMachine(t *testing.T) {
	w := newWorld(t)
	told := make(chan error, 1)
	err := Run(t.Context(), connect(t, w.srv), Options{ID: "a1", Capacity: 1 << 30, Ready: func(err error) { told <- err }})
	if err == nil || <-told == nil || !strings.Contains(err.Error(), "lower --capacity (without a fleet --concurrency) to") {
		t.Errorf("err %v, want what to do", err)
	}
}
