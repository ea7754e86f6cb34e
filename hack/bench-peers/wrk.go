package main

import (
	_ "embed"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed wrk.lua
var wrkScript []byte

func wrkPeer(t tools) peer {
	bin, env := "wrk", []string(nil)
	debian := filepath.Join(t.dir, "debian", "usr")
	if path := filepath.Join(debian, "bin", "wrk"); exists(path) {
		bin = path
		libraries, _ := filepath.Glob(filepath.Join(debian, "lib", "*-linux-gnu"))
		env = []string{"LD_LIBRARY_PATH=" + strings.Join(libraries, ":")}
	}
	return peer{
		name: "wrk",
		command: func(j job) command {
			return command{
				args: []string{bin, "-t1", "-c", strconv.Itoa(j.callers), "-d", seconds(j.length.Round(time.Second)) + "s", "-s", script(j.dir, "wrk.lua", wrkScript), j.url},
				env:  append(env, "SESSION="+j.session, "ACCEPT="+accept, "PROTOCOL="+protocol),
			}
		},
		said: func(_ job, out []byte) (s said, err error) { return s, lastJSON(out, &s) },
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
