package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"ordeal/controller/result"
	"ordeal/testdata/peers"
)

// BenchmarkScanMock is the README's first scan, engine start-up included.
func BenchmarkScanMock(b *testing.B) {
	for b.Loop() {
		err := run(b.Context(), []string{"scan", "mock:degraded", "--requests", "40", "--concurrency", "16", "--fault-rate", "0.3"},
			Streams{Out: io.Discard, Err: io.Discard})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScanStdio scans a real stdio server and reports which share of the
// time went neither into calls and deliberate waits nor into the server's start.
func BenchmarkScanStdio(b *testing.B) {
	server := line(peers.Node(b, "server-everything"))
	var own, all, startup float64
	for b.Loop() {
		var out bytes.Buffer
		err := run(b.Context(), []string{"scan", server, "--tool", "echo", "--tool-args", `{"message": "hi"}`, "--timeout", "1s", "--json"},
			Streams{Out: &out, Err: io.Discard})
		if err != nil {
			b.Fatal(err)
		}
		var doc result.Document
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
			b.Fatal(err)
		}
		own, all, startup = own+doc.Run.Time.OwnS, all+doc.Run.DurationS, startup+doc.Run.Time.StartupS
	}
	b.ReportMetric(100*own/all, "own%")
	b.ReportMetric(100*startup/all, "startup%")
}
