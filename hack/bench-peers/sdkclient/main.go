// Command sdkclient is the Go SDK's own client in a loop: so many goroutines that
// call echo over one session until the time is up. It prints what it saw as JSON.
//
//	sdkclient -url http://127.0.0.1:8080/mcp -callers 32 -for 3s
//	sdkclient -callers 8 -for 3s COMMAND [ARGUMENT…]     a stdio server
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// said has latencies in seconds.
type said struct {
	Calls  int     `json:"calls"`
	Errors int     `json:"errors"`
	WallS  float64 `json:"wall_s"`
	P50S   float64 `json:"p50_s"`
	P99S   float64 `json:"p99_s"`
}

func main() {
	url := flag.String("url", "", "Streamable HTTP endpoint")
	callers := flag.Int("callers", 32, "goroutines")
	length := flag.Duration("for", 3*time.Second, "how long")
	flag.Parse()
	got, err := run(context.Background(), transport(*url, *callers, flag.Args()), *callers, *length)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(got)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "sdkclient: %v\n", err)
		os.Exit(1)
	}
}

// transport keeps a connection for each caller: net/http's own default is two, and
// then most calls open one.
func transport(url string, callers int, command []string) mcp.Transport {
	if len(command) > 0 {
		return &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}
	}
	pool := &http.Transport{MaxIdleConnsPerHost: callers + 1}
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: pool}}
}

func run(ctx context.Context, t mcp.Transport, callers int, length time.Duration) (said, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, t, nil)
	if err != nil {
		return said{}, fmt.Errorf("connect: %w", err)
	}
	all := make([]calls, callers)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i].loop(ctx, session, began.Add(length)) })
	}
	wg.Wait()
	got := sum(all, time.Since(began))
	return got, session.Close()
}

// calls are one goroutine's.
type calls struct {
	latencies []time.Duration
	errors    int
}

func (c *calls) loop(ctx context.Context, session *mcp.ClientSession, end time.Time) {
	params := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hello"}}
	for began := time.Now(); began.Before(end); {
		result, err := session.CallTool(ctx, params)
		done := time.Now()
		if err != nil || result.IsError {
			c.errors++
		} else {
			c.latencies = append(c.latencies, done.Sub(began))
		}
		began = done
	}
}

func sum(all []calls, wall time.Duration) said {
	got := said{WallS: wall.Seconds()}
	var latencies []time.Duration
	for _, c := range all {
		latencies = append(latencies, c.latencies...)
		got.Errors += c.errors
	}
	slices.Sort(latencies)
	if got.Calls = len(latencies); got.Calls > 0 {
		got.P50S, got.P99S = latencies[got.Calls/2].Seconds(), latencies[got.Calls*99/100].Seconds()
	}
	return got
}
