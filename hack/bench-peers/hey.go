package main

import (
	"fmt"
	"regexp"
	"strconv"
)

// heyPeer sends one body, so one id: only the bare server takes that.
func heyPeer(t tools) peer {
	number := func(out []byte, pattern string) float64 {
		m := regexp.MustCompile(pattern).FindSubmatch(out)
		if m == nil {
			return 0
		}
		n, _ := strconv.ParseFloat(string(m[1]), 64)
		return n
	}
	return peer{
		name: "hey",
		command: func(j job) command {
			args := []string{t.bin("hey"), "-z", j.length.String(), "-c", strconv.Itoa(j.callers), "-m", "POST", "-T", "application/json", "-d", fmt.Sprintf(call, "1"),
				"-H", "Accept: " + accept, "-H", "Mcp-Protocol-Version: " + protocol}
			return command{args: append(args, j.url)}
		},
		said: func(_ job, out []byte) (said, error) {
			good := int64(number(out, `\[200\]\s+(\d+) responses`))
			if good == 0 {
				return said{}, fmt.Errorf("hey: no good answer in %.300q", out)
			}
			// Errors stand in lines of their own: [count] text.
			s := said{Calls: good, P50: number(out, `50%+ in ([\d.]+) secs`), P99: number(out, `99%+ in ([\d.]+) secs`)}
			s.Errors = int64(number(out, `Error distribution:\s+\[(\d+)\]`))
			return s, nil
		},
	}
}
