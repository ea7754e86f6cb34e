package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"bench-peers/tape"
)

const (
	protocol = "2025-06-18"
	accept   = "application/json, text/event-stream"
	// call is what every generator sends, with an id of its own in place of %s.
	call = `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}`
)

// target is a server that was started for one run.
type target struct {
	url string
	cmd *exec.Cmd
}

// startServer returns once it listens: it says so by its URL.
func startServer(args []string) (*target, error) {
	args = pinned(serverCPU, args)
	c := exec.Command(args[0], args[1:]...)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is ours to pass on
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	t := &target{cmd: c}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.stop()
		return nil, fmt.Errorf("server %v: ended before it listened", args)
	}
	t.url = strings.TrimSpace(line)
	return t, nil
}

func (t *target) stop() {
	t.cmd.Process.Kill()
	t.cmd.Wait() // killed: there is nothing to learn from it
}

// warm drives the server until its heap, its connections and its code are as they
// will be: a run of 3 s is too short to pay for that. It does so in a session of its
// own, and the tape forgets it.
func (t *target) warm(ctx context.Context, session bool, calls *tape.Tape) error {
	sid := ""
	if session {
		var err error
		if sid, err = openSession(ctx, t.url); err != nil {
			return err
		}
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	defer client.CloseIdleConnections()
	errs := make([]error, 32)
	end := time.Now().Add(500 * time.Millisecond)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := 0; time.Now().Before(end) && errs[i] == nil; n++ {
				_, errs[i] = post(ctx, client, t.url, sid, fmt.Sprintf(call, fmt.Sprint(i*1_000_000+n)))
			}
		})
	}
	wg.Wait()
	calls.Rewind()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("warm the server: %w", err)
		}
	}
	return nil
}

// openSession shakes hands and returns the id that calls are to bear.
func openSession(ctx context.Context, url string) (string, error) {
	sid, err := post(ctx, http.DefaultClient, url, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+
		protocol+`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil {
		return "", fmt.Errorf("open a session: %w", err)
	}
	_, err = post(ctx, http.DefaultClient, url, sid, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return sid, err
}

// post sends a message, reads the whole answer and returns the session it was given.
func post(ctx context.Context, client *http.Client, url, session, message string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		return "", err
	}
	for name, value := range headers(session) {
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, resp.Body); err != nil {
		return "", err
	}
	if resp.StatusCode >= 300 {
		return "", fmt.Errorf("%s: %.200s", resp.Status, b.String())
	}
	return resp.Header.Get("Mcp-Session-Id"), nil
}

// headers of a call, for generators that must be told.
func headers(session string) map[string]string {
	h := map[string]string{"Content-Type": "application/json", "Accept": accept, "Mcp-Protocol-Version": protocol}
	if session != "" {
		h["Mcp-Session-Id"] = session
	}
	return h
}
