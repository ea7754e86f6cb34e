package fleettest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tempDir is read before any test can point TMPDIR at a directory that ends with
// that test.
var tempDir = os.TempDir()

// built is where binaries are, or why they are not.
type built struct {
	dir string
	err error
}

var (
	programs   = sync.OnceValue(func() built { return compile("ordeal/cmd/ordeal", "ordeal/cmd/ordeal-agent") })
	natsServer = sync.OnceValue(func() built { return compile("ordeal/testdata/fleettest/natsd") })
)

// Build builds ordeal and ordeal-agent, without the race detector, once per test
// process, and returns their paths.
func Build(t testing.TB) (ordeal, agent string) {
	t.Helper()
	b := programs()
	if b.err != nil {
		t.Fatal(b.err)
	}
	return filepath.Join(b.dir, "ordeal"), filepath.Join(b.dir, "ordeal-agent")
}

// compile builds commands into a directory per module, which the next test
// process finds again: linking anew would cost it some 3 s a command. Two
// processes may do so at once, since the go command renames its output into
// place.
func compile(packages ...string) built {
	root, err := moduleRoot()
	if err != nil {
		return built{err: err}
	}
	dir, err := binDir(root)
	if err != nil {
		return built{err: err}
	}
	if err := watch(root); err != nil {
		return built{err: fmt.Errorf("fleettest: sources: %w", err)}
	}
	cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", dir + "/"}, packages...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return built{err: fmt.Errorf("fleettest: build %s: %w\n%s", strings.Join(packages, " "), err, out)}
	}
	return built{dir: dir}
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	mod := strings.TrimSpace(string(out))
	if err != nil || !filepath.IsAbs(mod) || filepath.Base(mod) != "go.mod" {
		return "", fmt.Errorf("fleettest: go env GOMOD: %q, %v: run the test inside the module", mod, err)
	}
	return filepath.Dir(mod), nil
}

// binDir must be ours, or anybody who can write to the temporary directory
// could choose what a test runs.
func binDir(root string) (string, error) {
	prefix := fmt.Sprintf("ordeal-fleettest-%d-", os.Getuid())
	sum := sha256.Sum256([]byte(root))
	dir := filepath.Join(tempDir, fmt.Sprintf("%s%x", prefix, sum[:6]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("fleettest: %w", err)
	}
	if err := errors.Join(os.Chtimes(dir, time.Time{}, time.Now()), prune(prefix)); err != nil {
		return "", fmt.Errorf("fleettest: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("fleettest: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(st.Uid) != os.Getuid() {
		return "", fmt.Errorf("fleettest: %s is not a directory of ours: remove it", dir)
	}
	return dir, nil
}

// prune removes the binaries of checkouts that nobody has tested for a day.
func prune(prefix string) error {
	dirs, err := filepath.Glob(filepath.Join(tempDir, prefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// notSource are directories without sources of ours, two of them large.
var notSource = []string{".git", "node_modules", "venv", "bin"}

// watch looks at every file of the module, since any may be embedded. The go
// command keeps the result of a test until a file changes that the test has
// opened or looked at; what it builds with a command of its own does not count.
// Without this, a change of the agent would leave the tests of the fleet cached
// and green.
func watch(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone while we looked
			return nil
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(notSource, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
