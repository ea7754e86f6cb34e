package fleettest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const mountWait = 10 * time.Second

// SmallDisk returns a directory on a file system of its own that holds so many
// bytes, rounded up to pages, and then says "no space left on device". It is
// empty and goes with the test.
//
// For a JetStream store on it, set NATSOptions.MaxFile above its size: by
// default JetStream plans with 3/4 of what is free, and refuses before the disk
// does.
func SmallDisk(t testing.TB, bytes int64) (dir string) {
	t.Helper()
	var tried error
	for _, way := range waysToMount {
		dir, err := way.mount(t, bytes)
		if err == nil {
			return dir
		}
		tried = errors.Join(tried, fmt.Errorf("%s: %w", way.name, err))
	}
	t.Fatalf("fleettest: no small disk: run as root, or allow user namespaces:\n%v", tried)
	return ""
}

// waysToMount begins with the one that leaves nothing behind whatever becomes
// of the test. A loop device would need the same right to mount as a tmpfs.
var waysToMount = []struct {
	name  string
	mount func(testing.TB, int64) (string, error)
}{
	{"tmpfs in a namespace of its own", mountApart},
	{"tmpfs", mountHere},
}

// mountApart mounts in the mount and user namespace of a child, which needs no
// right at all where user namespaces are allowed, and reaches in through /proc.
// The mount ends with the child, and that at the end of its standard input.
func mountApart(t testing.TB, bytes int64) (string, error) {
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", `mount -t tmpfs -o "size=$1,mode=700" small "$2" && echo mounted >&2 && exec cat`, "sh", fmt.Sprint(bytes), dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if _, err := cmd.StdinPipe(); err != nil {
		return "", err
	}
	p := newProc("small disk", cmd)
	if err := p.start(); err != nil {
		return "", err
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), mountWait)
	defer cancel()
	if _, err := p.WaitStderr(ctx, "mounted"); err != nil {
		return "", err
	}
	inside := filepath.Join(fmt.Sprintf("/proc/%d/root", p.Pid()), dir)
	return inside, isSmall(inside, bytes)
}

// mountHere needs the right to mount. A test process that is killed leaves the
// mount behind.
func mountHere(t testing.TB, bytes int64) (string, error) {
	dir := t.TempDir()
	if err := unix.Mount("small", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", bytes)); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil { // detached: whoever still has files open keeps them
			t.Errorf("fleettest: unmount %s: %v", dir, err)
		}
	})
	return dir, isSmall(dir, bytes)
}

// isSmall makes sure that a test which fills the disk does not fill the
// machine's.
func isSmall(dir string, bytes int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return err
	}
	if size := int64(fs.Blocks) * fs.Bsize; size > bytes+int64(os.Getpagesize()) {
		return fmt.Errorf("%s has %d bytes, asked for %d", dir, size, bytes)
	}
	return nil
}
