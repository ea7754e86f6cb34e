package main

import (
	"fmt"
	"path/filepath"
	"strconv"
)

func autocannonPeer(t tools) peer {
	return peer{
		name: "autocannon",
		command: func(j job) command {
			args := []string{"node", filepath.Join(t.dir, "npm", "node_modules", "autocannon", "autocannon.js"), "-c", strconv.Itoa(j.callers), "-d", seconds(j.length),
				"-m", "POST", "-n", "-j", "-I", "-b", fmt.Sprintf(call, `"[<id>]"`)}
			return command{args: append(append(args, headerFlags("-H", "=", j.session)...), j.url)}
		},
		said: func(_ job, out []byte) (said, error) {
			var r struct {
				Good    int64 `json:"2xx"`
				Bad     int64 `json:"non2xx"`
				Errors  int64
				Latency struct{ P50, P99 float64 } // ms
			}
			if err := lastJSON(out, &r); err != nil {
				return said{}, err
			}
			return said{Calls: r.Good + r.Bad, Errors: r.Bad + r.Errors, P50: r.Latency.P50 / 1e3, P99: r.Latency.P99 / 1e3}, nil
		},
	}
}
