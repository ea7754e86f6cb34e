package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/pflag"

	"ordeal/agent/secret"
	"ordeal/agent/wire/bus"
)

// LinkFlags are the flags that say how to reach the servers of a fleet, and as
// whom; every command that talks to one has them.
type LinkFlags struct {
	Messages    func(text string) // told about waiting, lost and regained connections; may be nil
	Reconnected func()            // called each time a lost connection stands again; may be nil

	link     bus.Link
	required bool
}

// natsURL is the environment variable in place of --nats, where that is
// required: a scan never leaves this process because of a variable.
const natsURL = "NATS_URL"

// Bind defines the flags; required ones stand for a command that has no meaning
// without a fleet.
func (f *LinkFlags) Bind(fs *pflag.FlagSet, required bool) {
	f.required = required
	usage := "NATS `URL`s, comma separated: use the agents there, not in-process ones (never taken from $" + natsURL + ")"
	if required {
		usage = "NATS `URL`s of the fleet, comma separated (default: $" + natsURL + ")"
	}
	fs.StringVar(&f.link.URLs, "nats", "", usage)
	fs.StringVar(&f.link.Creds, "creds", "", "`file` with the NATS user's JWT and key")
	fs.StringVar(&f.link.Nkey, "nkey", "", "`file` with the seed of the NATS user's nkey")
	fs.StringVar(&f.link.Token, "token", "", "NATS token, best as a reference: '${env:NATS_TOKEN}' or '${file:/path}'")
	fs.StringVar(&f.link.User, "user", "", "NATS user, as `NAME:PASSWORD`, the password best as a reference: 'me:${env:NATS_PASSWORD}'")
	fs.StringVar(&f.link.CA, "tls-ca", "", "`file` of the certificates that vouch for the NATS servers")
	fs.StringVar(&f.link.Cert, "tls-cert", "", "`file` of the own certificate, for servers that want one")
	fs.StringVar(&f.link.Key, "tls-key", "", "`file` of its key")
}

// Given reports whether servers are named.
func (f *LinkFlags) Given() bool { return f.urls() != "" }

func (f *LinkFlags) urls() string {
	if f.required {
		return cmp.Or(f.link.URLs, os.Getenv(natsURL))
	}
	return f.link.URLs
}

// Connect connects as name. A controller, whose agentID is empty, fails within
// seconds; an agent waits until ctx ends for servers that are not there yet.
// No error repeats a secret.
func (f *LinkFlags) Connect(ctx context.Context, name, agentID string) (*bus.Bus, error) {
	l := f.link
	l.URLs, l.Name, l.Agent, l.Patient = f.urls(), name, agentID, agentID != ""
	l.Messages, l.Reconnected = f.Messages, f.Reconnected
	if l.URLs == "" {
		return nil, f.noServers()
	}
	var tokenErr, userErr error
	l.Token, tokenErr = resolve("--token", l.Token)
	l.User, userErr = resolve("--user", l.User)
	if err := errors.Join(tokenErr, userErr); err != nil {
		return nil, err
	}
	return bus.Connect(ctx, l)
}

func (f *LinkFlags) noServers() error {
	if f.required {
		return errors.New("no servers: give --nats nats://HOST:4222, or set " + natsURL)
	}
	return errors.New("no servers: give --nats nats://HOST:4222")
}

// reference is what resolve replaces. A dollar sign before anything else is
// part of the secret, as a password is seldom chosen with references in mind.
var reference = regexp.MustCompile(`\$\{(?:env:[A-Za-z_][A-Za-z0-9_]*|file:[^}]+)\}`)

// resolve puts the values of references into a flag's value. Its error names
// the flag and the reference, never anything around it.
func resolve(flag, text string) (string, error) {
	var failed error
	value := reference.ReplaceAllStringFunc(text, func(ref string) string {
		value, err := secret.Resolve(ref)
		switch {
		case err != nil:
			failed = fmt.Errorf("%s: %w", flag, err)
		case value == "":
			failed = fmt.Errorf("%s: %s is empty", flag, ref)
		}
		return value
	})
	if failed != nil {
		return "", failed
	}
	return value, nil
}
