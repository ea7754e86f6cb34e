package main

import (
	_ "embed"
	"os"
	"os/exec"
	"strconv"
)

//go:embed k6.js
var k6Script []byte

// k6Peer is there when K6 names it or the PATH has it: see install.sh.
func k6Peer() peer {
	bin := os.Getenv("K6")
	if bin == "" {
		bin, _ = exec.LookPath("k6")
	}
	if bin == "" {
		return peer{name: "k6"}
	}
	return peer{
		name: "k6",
		command: func(j job) command {
			return command{
				args: []string{bin, "run", "--quiet", "--no-usage-report", "--no-color", "--address", "", script(j.dir, "k6.js", k6Script)},
				env: []string{"URL=" + j.url, "SESSION=" + j.session, "ACCEPT=" + accept, "PROTOCOL=" + protocol, "CALLERS=" + strconv.Itoa(j.callers),
					"MOST=" + strconv.Itoa(max(j.callers, j.inFlight)), "RATE=" + strconv.Itoa(j.rate), "FOR=" + j.length.String(), "HOME=" + j.dir},
			}
		},
		said: func(_ job, out []byte) (s said, err error) { return s, lastJSON(out, &s) },
	}
}
