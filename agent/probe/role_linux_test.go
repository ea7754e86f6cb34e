package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ordeal/agent/wire"
)

// roleVar names what a child of the test binary does in place of tests.
const roleVar = "ORDEAL_PROBE_TEST_ROLE"

// limitTimeout is that of the calls of a generator in a process of its own.
const limitTimeout = 2 * time.Second

var hogged int // keeps the loop of a hog

func TestMain(m *testing.M) {
	switch role, arg, _ := strings.Cut(os.Getenv(roleVar), " "); role {
	case "":
		os.Exit(m.Run())
	case "hog":
		for spun := 0; ; spun++ {
			hogged = spun
		}
	case "echo":
		serveEcho(arg)
	case "load":
		generate(arg)
	default:
		panic(role)
	}
}

// serveEcho is a server in a process of its own until its parent ends. It stalls for
// a second, four seconds after its start, when told to.
func serveEcho(arg string) {
	e, err := listenEcho()
	if err != nil {
		panic(err)
	}
	if arg == "stall" {
		e.stall, e.from = time.Second, time.Now().Add(4*time.Second)
	}
	fmt.Println(e.addr)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // ends with the parent
}

// order is what a generator in a process of its own shall do.
type order struct {
	Addr  string
	Load  wire.Load
	Files uint64 // limit of open files; 0 leaves it
	Full  bool   // not a single one more
}

// report is what it found.
type report struct {
	Generator wire.Generator
	Failure   *wire.Failure
	Marked    time.Duration // after the start; 0: it was not
	Peak      uint64        // most memory that the runtime held
	Successes int64
	Harness   int64
	Measured  int64
}

func generate(arg string) {
	var o order
	if err := json.Unmarshal([]byte(arg), &o); err != nil {
		panic(err)
	}
	if o.Full { // no more than are open, with those that the poller of the runtime takes
		e, err := listenEcho()
		if err != nil {
			panic(err)
		}
		defer e.listener.Close()
		next, err := os.Open(os.DevNull)
		if err != nil {
			panic(err)
		}
		o.Files = uint64(next.Fd())
		next.Close()
	}
	if o.Files > 0 {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: o.Files, Max: o.Files}); err != nil {
			panic(err)
		}
	}
	var r report
	began := time.Now()
	e := &echo{addr: o.Addr}
	u := loadUnit(1<<40, o.Load)
	u.Target.Timeout = limitTimeout
	var m *meter
	r.Peak = watchMemory(func() {
		res := Run(context.Background(), Env{Target: e, Ready: func(context.Context) error { began = time.Now(); return nil }, metered: func(made *meter) { m = made }}, u, nil)
		r.Generator, r.Failure = res.Generator, res.Failure
		if t := res.Tally; t != nil {
			r.Successes, r.Measured, r.Harness = t.Successes(), t.Measured(), t.Calls()-t.Measured()
		}
	})
	if m != nil && !m.marked.IsZero() {
		r.Marked = m.marked.Sub(began)
	}
	if err := json.NewEncoder(os.Stdout).Encode(&r); err != nil {
		panic(err)
	}
}

// child starts the test binary in a role, on one CPU unless it is negative, and ends
// it with the test. first is the first line it says.
func child(t testing.TB, cpu int, role string) (first func() string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := startOn(cmd, cpu); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	})
	return func() string {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatalf("child %q: %v", role, err)
		}
		return strings.TrimSpace(line)
	}
}

// startOn starts a process on one CPU: it takes over the affinity of the thread that
// starts it.
func startOn(cmd *exec.Cmd, cpu int) error {
	if cpu < 0 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }() // it was so before
	return cmd.Start()
}

// lastCPU is one that the tests may use.
func lastCPU(t testing.TB) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := 1023; cpu >= 0; cpu-- {
		if set.IsSet(cpu) {
			return cpu
		}
	}
	t.Fatal("no CPU")
	return 0
}

// generator runs a load in a process of its own.
func generator(t testing.TB, cpu int, o order) (r report) {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(child(t, cpu, "load "+string(raw))()), &r); err != nil {
		t.Fatal(err)
	}
	return r
}
