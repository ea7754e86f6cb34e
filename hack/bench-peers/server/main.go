// Command server is what the load generators are pointed at.
//
//	server -mode bare         net/http and a canned MCP answer, the call's id copied into it
//	server -mode json         Go SDK, stateless, answers in JSON
//	server -mode sse          Go SDK, a session, answers as event streams (the SDK's default)
//	server -mode stdio        Go SDK over its standard streams
//	server -mode stdio-bare   lines answered from a can
//
// It listens on a free port of the loopback and prints its URL. What arrives is
// counted on the tape; -stall-at and -stall-for hold every call that arrives in
// that window after the first (bare only).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"bench-peers/tape"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	mode := flag.String("mode", "bare", "bare, json, sse, stdio or stdio-bare")
	path := flag.String("tape", "", "tape that calls are counted on")
	stall := window{}
	flag.DurationVar(&stall.at, "stall-at", 0, "when calls begin to be held, after the first")
	flag.DurationVar(&stall.length, "stall-for", 0, "how long")
	flag.Parse()
	if err := run(*mode, *path, stall); err != nil {
		fmt.Fprintf(os.Stderr, "server: %v\n", err)
		os.Exit(1)
	}
}

func run(mode, path string, stall window) error {
	calls, err := tape.Open(path)
	if err != nil {
		return fmt.Errorf("tape: %w", err)
	}
	go calls.Watch() // ends with the process
	switch mode {
	case "bare":
		return serve(&bare{calls: calls, stall: stall})
	case "json", "sse":
		s := sdkServer(calls)
		return serve(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
			&mcp.StreamableHTTPOptions{Stateless: mode == "json", JSONResponse: mode == "json"}))
	case "stdio":
		err := sdkServer(calls).Run(context.Background(), &mcp.StdioTransport{})
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	case "stdio-bare":
		return lines(os.Stdin, os.Stdout, calls)
	}
	return fmt.Errorf("mode %q: want bare, json, sse, stdio or stdio-bare", mode)
}

func serve(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	return http.Serve(l, h)
}

type echo struct {
	Message string `json:"message"`
}

func sdkServer(calls *tape.Tape) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	tool := &mcp.Tool{Name: "echo", Description: "says it again", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	mcp.AddTool(s, tool, func(_ context.Context, _ *mcp.CallToolRequest, in echo) (*mcp.CallToolResult, any, error) {
		calls.Arrive(time.Now())
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Echo: " + in.Message}}}, nil, nil
	})
	return s
}
