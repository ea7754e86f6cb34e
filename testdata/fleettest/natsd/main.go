// Command natsd is the nats-server of fleettest, in a process of its own so that
// it can be killed, stopped and started again: natsd CONFIG-FILE. It prints
// "ready URL" once clients can connect, logs to stderr, ends on SIGTERM and
// reloads its configuration on SIGHUP.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// readyWait includes the recovery of a large store.
const readyWait = 30 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: natsd CONFIG-FILE")
	}
	opts, err := server.ProcessConfigFile(args[0])
	if err != nil {
		return err
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	srv.ConfigureLogger()
	srv.Start() // and its signal handlers
	if !srv.ReadyForConnections(readyWait) {
		return fmt.Errorf("not ready within %v", readyWait)
	}
	fmt.Println("ready", srv.ClientURL())
	srv.WaitForShutdown()
	return nil
}
