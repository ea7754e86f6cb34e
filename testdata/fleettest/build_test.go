package fleettest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Binaries stay for the next test process, those of a checkout that is no
// longer tested do not.
func TestPrune(t *testing.T) {
	defer func(dir string) { tempDir = dir }(tempDir)
	tempDir = t.TempDir()
	mine, err := binDir("/a/checkout")
	if err != nil {
		t.Fatal(err)
	}
	old := mine + "0"
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-25 * time.Hour)
	for _, dir := range []string{mine, old} {
		if err := os.Chtimes(dir, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := binDir("/a/checkout"); again != mine || err != nil {
		t.Errorf("directory %s, %v; want %s again", again, err, mine)
	}
	left, err := filepath.Glob(filepath.Join(tempDir, "*"))
	if err != nil || len(left) != 1 || left[0] != mine {
		t.Errorf("left %v, %v; want only %s", left, err, mine)
	}
}
