package bus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// passes reports whether a failed connection may work later without anybody
// changing anything here.
func passes(err error) bool {
	var lookup *net.DNSError
	var dial *net.OpError
	switch {
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &lookup):
		return true
	case errors.As(err, &dial):
		return dial.Op != "remote error" // a TLS alert
	}
	return false
}

// explain says what went wrong, and which flag mends it.
func (l *Link) explain(err error) error {
	var lookup *net.DNSError
	switch {
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("connection refused: nothing listens there; start nats-server -js, or correct --nats (%w)", err)
	case errors.As(err, &lookup):
		return fmt.Errorf("cannot find the host %s: correct --nats (%w)", lookup.Name, err)
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no answer in time: correct --nats, or look for a firewall in between (%w)", err)
	case errors.Is(err, nats.ErrNoInfoReceived):
		return fmt.Errorf("what listens there does not speak NATS: correct the port in --nats (%w)", err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("the server does not speak TLS: write nats:// in --nats and leave out %s, or set up TLS there (%w)", l.tlsFlags(), err)
	}
	if said := l.explainUser(err); said != nil {
		return said
	}
	if said := l.explainTLS(err); said != nil {
		return said
	}
	return hideURL(err)
}

// tlsFlags are the flags given that ask for TLS.
func (l *Link) tlsFlags() string {
	var given []string
	for _, f := range []struct{ flag, value string }{{"--tls-ca", l.CA}, {"--tls-cert and --tls-key", l.Cert}} {
		if f.value != "" {
			given = append(given, f.flag)
		}
	}
	if len(given) == 0 {
		return "tls://"
	}
	return strings.Join(given, ", ")
}

// explainUser explains refused credentials; nil for another error.
func (l *Link) explainUser(err error) error {
	switch {
	case errors.Is(err, nats.ErrAuthorization) && l.who() == "":
		return fmt.Errorf("the server wants to know who this is: give --creds, --nkey, --token or --user (%w)", err)
	case errors.Is(err, nats.ErrAuthorization):
		return fmt.Errorf("the server refuses the credentials of %s: correct them, or add them to the server's users (%w)", l.who(), err)
	case errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("the credentials of %s are no longer valid: issue new ones (%w)", l.who(), err)
	case errors.Is(err, nats.ErrNkeysNotSupported):
		return fmt.Errorf("the server has no nkey users: add the one of %s there, or use --user or --token (%w)", l.who(), err)
	}
	return nil
}

// who names where the credentials come from; "" when there are none.
func (l *Link) who() string {
	switch {
	case l.Creds != "":
		return "--creds " + l.Creds
	case l.Nkey != "":
		return "--nkey " + l.Nkey
	case l.Token != "":
		return "--token"
	case l.User != "":
		return "--user"
	case strings.Contains(l.URLs, "@"):
		return "--nats"
	}
	return ""
}

// explainTLS explains certificates that one of the two sides refuses; nil for
// another error.
func (l *Link) explainTLS(err error) error {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	var alert *net.OpError
	switch {
	case errors.As(err, &unknown) && l.CA == "":
		return fmt.Errorf("nobody known here vouches for the server's certificate: give --tls-ca FILE with the certificate of its authority (%w)", err)
	case errors.As(err, &unknown):
		return fmt.Errorf("--tls-ca %s does not vouch for the server's certificate: give the certificate of its authority (%w)", l.CA, err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return explainExpired(invalid.Cert, err)
	case errors.As(err, &host):
		return fmt.Errorf("the server's certificate is for %s: use such a name in --nats (%w)", names(host.Certificate), err)
	case errors.As(err, &record):
		return fmt.Errorf("the server does not speak TLS as NATS does: write nats:// in --nats and leave out %s (%w)", l.tlsFlags(), err)
	case errors.As(err, &alert) && alert.Op == "remote error" && l.Cert == "":
		return fmt.Errorf("the server wants a certificate of this client: give --tls-cert and --tls-key (%w)", err)
	case errors.As(err, &alert) && alert.Op == "remote error":
		return fmt.Errorf("the server refuses the certificate of --tls-cert %s: it may have expired, or be of an authority unknown there (%w)", l.Cert, err)
	// A server that refuses a client's certificate says so after the handshake,
	// and what it says may be lost with the connection.
	case errors.Is(err, nats.ErrTLS) && l.Cert == "":
		return fmt.Errorf("the server ended the connection after the TLS handshake: it may want a certificate of this client, --tls-cert and --tls-key (%w)", err)
	case errors.Is(err, nats.ErrTLS):
		return fmt.Errorf("the server ended the connection after the TLS handshake: it probably refuses the certificate of --tls-cert %s (%w)", l.Cert, err)
	}
	return nil
}

func explainExpired(cert *x509.Certificate, err error) error {
	if now := time.Now(); now.Before(cert.NotBefore) {
		return fmt.Errorf("the server's certificate is not valid before %s: set this machine's clock (%w)", cert.NotBefore.Format(time.DateTime), err)
	}
	return fmt.Errorf("the server's certificate has expired on %s: renew it, or set this machine's clock (%w)", cert.NotAfter.Format(time.DateTime), err)
}

// names are the hosts a certificate is for.
func names(cert *x509.Certificate) string {
	all := cert.DNSNames
	for _, ip := range cert.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "no host"
	}
	return strings.Join(all, ", ")
}

// redact hides the user, password or token of each of the servers' URLs. It
// cuts text, since a URL that cannot be parsed may hold a secret too.
func redact(urls string) string {
	servers := strings.Split(urls, ",")
	if slices.ContainsFunc(servers, func(s string) bool { return strings.Contains(s, "@") && !strings.Contains(s, "://") }) {
		return "***@" + urls[strings.LastIndex(urls, "@")+1:] // the comma may be a password's
	}
	for i, s := range servers {
		at := strings.LastIndex(s, "@")
		if at < 0 {
			continue
		}
		scheme := ""
		if end := strings.Index(s, "://"); end >= 0 && end < at {
			scheme = s[:end+len("://")]
		}
		servers[i] = scheme + "***@" + s[at+1:]
	}
	return strings.Join(servers, ",")
}

// hideURL replaces an error that quotes the URL it could not parse.
func hideURL(err error) error {
	var bad *url.Error
	if errors.As(err, &bad) {
		return errors.New("not a URL: write --nats nats://HOST:4222, and who this is with --user, --token, --nkey or --creds")
	}
	return err
}

// hidden is an error whose text is free of the link's secrets.
type hidden struct {
	error
	text string
}

func (h hidden) Error() string { return h.text }
func (h hidden) Unwrap() error { return h.error }

// shortSecret is the length below which a secret is not searched for in a
// text: it would be found in innocent words.
const shortSecret = 4

// hide is the last net below the messages above: a library may quote what it
// was given.
func (l *Link) hide(err error) error {
	text := err.Error()
	for _, s := range l.secrets() {
		if len(s) >= shortSecret {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	if text = strings.ReplaceAll(text, "\n", "; "); text == err.Error() {
		return err
	}
	return hidden{err, text}
}

// secrets of the link, as they were given and as a URL holds them.
func (l *Link) secrets() []string {
	_, password, _ := strings.Cut(l.User, ":")
	all := []string{l.Token, password}
	for server := range strings.SplitSeq(l.URLs, ",") {
		at := strings.LastIndex(server, "@")
		if at < 0 {
			continue
		}
		_, rest, ok := strings.Cut(server[:at], "://")
		if !ok {
			rest = server[:at]
		}
		name, password, ok := strings.Cut(rest, ":")
		if !ok {
			password = name // a token
		}
		plain, err := url.PathUnescape(password)
		if err != nil {
			plain = password
		}
		all = append(all, password, plain)
	}
	return all
}
