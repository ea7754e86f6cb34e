package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// fortioPeer uses its fast client, which sends one id for as long as it runs: it has
// no other body there. Only the bare server takes that.
func fortioPeer(t tools) peer {
	file := func(j job) string { return filepath.Join(j.dir, "fortio.json") }
	return peer{
		name: "fortio",
		command: func(j job) command {
			args := []string{t.bin("fortio"), "load", "-quiet", "-loglevel", "Error", "-c", strconv.Itoa(j.callers), "-t", j.length.String(), "-qps", strconv.Itoa(j.rate),
				"-p", "50,99", "-r", "0.0001", "-json", file(j), "-payload", fmt.Sprintf(call, "1")}
			return command{args: append(append(args, headerFlags("-H", ": ", j.session)...), j.url)}
		},
		said: func(j job, _ []byte) (said, error) {
			b, err := os.ReadFile(file(j))
			if err != nil {
				return said{}, err
			}
			var r struct {
				RetCodes          map[string]int64
				DurationHistogram struct {
					Count       int64
					Percentiles []struct{ Percentile, Value float64 }
				}
			}
			if err := json.Unmarshal(b, &r); err != nil {
				return said{}, err
			}
			s := said{Calls: r.DurationHistogram.Count, Errors: r.DurationHistogram.Count - r.RetCodes["200"]}
			if p := r.DurationHistogram.Percentiles; len(p) == 2 {
				s.P50, s.P99 = p[0].Value, p[1].Value
			}
			return s, nil
		},
	}
}
