package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"ordeal/agent/wire"
)

// oneLine checks that an error is one line, names what to do, and tells no
// secret.
func oneLine(t *testing.T, err error, wants ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", wants)
	}
	text := err.Error()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("error %q lacks %q", text, want)
		}
	}
	if strings.ContainsAny(text, "\n\r") || strings.Contains(text, "s3cret") {
		t.Errorf("error %q: want one line without a secret", text)
	}
}

func addr(srv *server.Server) string { return srv.Addr().String() }

func TestConnectErrorsNameTheFlag(t *testing.T) {
	own, other := newAuthority(t, "own"), newAuthority(t, "other")
	plain := addr(serve(t, nil))
	users := addr(serve(t, func(o *server.Options) { o.Username, o.Password = "ordeal", "s3cret-right" }))
	secure := addr(serve(t, func(o *server.Options) { o.TLSConfig = own.serverTLS("127.0.0.1", 2*time.Hour, nil) }))
	expired := addr(serve(t, func(o *server.Options) { o.TLSConfig = own.serverTLS("127.0.0.1", time.Minute, nil) }))
	elsewhere := addr(serve(t, func(o *server.Options) { o.TLSConfig = own.serverTLS("nats.example.com", 2*time.Hour, nil) }))
	mutual := addr(serve(t, func(o *server.Options) { o.TLSConfig = own.serverTLS("127.0.0.1", 2*time.Hour, own) }))
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	foreignCert, foreignKey := other.issue("client", 2*time.Hour)
	ownCert, _ := own.issue("client", 2*time.Hour)
	seed, token := seedFile(t, nkeys.PrefixByteUser), "s3cret-token"
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		link  Link
		wants []string
	}{
		"Refused":           {Link{URLs: "nats://127.0.0.1:1"}, []string{"connection refused", "start nats-server", "--nats"}},
		"NoSuchHost":        {Link{URLs: "nats://no.such.host.invalid:4222"}, []string{"no.such.host.invalid", "--nats"}},
		"NotNATS":           {Link{URLs: strings.Replace(web.URL, "http", "nats", 1)}, []string{"--nats"}},
		"NoURL":             {Link{URLs: "nats://a b:x"}, []string{"not a URL"}},
		"WhoAreYou":         {Link{URLs: users}, []string{"give --creds, --nkey, --token or --user"}},
		"WrongPassword":     {Link{URLs: users, User: "ordeal:s3cret-wrong"}, []string{"refuses the credentials of --user"}},
		"WrongToken":        {Link{URLs: users, Token: token}, []string{"refuses the credentials of --token"}},
		"WrongInURL":        {Link{URLs: "nats://ordeal:s3cret-wrong@" + users}, []string{"refuses the credentials of --nats", "***@" + users}},
		"UnknownNkey":       {Link{URLs: users, Nkey: seed}, []string{"--nkey"}},
		"PlainServerCA":     {Link{URLs: plain, CA: own.ca()}, []string{"does not speak TLS", "--tls-ca"}},
		"PlainServerURL":    {Link{URLs: "tls://" + plain}, []string{"does not speak TLS", "tls://"}},
		"NoCA":              {Link{URLs: secure}, []string{"--tls-ca"}},
		"OtherCA":           {Link{URLs: secure, CA: other.ca()}, []string{"--tls-ca " + other.ca() + " does not vouch"}},
		"Expired":           {Link{URLs: expired, CA: own.ca()}, []string{"has expired on", "renew"}},
		"OtherHost":         {Link{URLs: elsewhere, CA: own.ca()}, []string{"is for nats.example.com"}},
		"NoClientCert":      {Link{URLs: mutual, CA: own.ca()}, []string{"--tls-cert and --tls-key"}},
		"OtherClientCert":   {Link{URLs: mutual, CA: own.ca(), Cert: foreignCert, Key: foreignKey}, []string{" the certificate of --tls-cert " + foreignCert}},
		"CertWithoutKey":    {Link{URLs: mutual, CA: own.ca(), Cert: foreignCert}, []string{"--tls-cert and --tls-key belong together"}},
		"KeyOfAnother":      {Link{URLs: mutual, CA: own.ca(), Cert: ownCert, Key: foreignKey}, []string{"--tls-cert", "--tls-key", "does not match"}},
		"MissingCA":         {Link{URLs: secure, CA: "/no/ca.pem"}, []string{"--tls-ca /no/ca.pem: no such file"}},
		"MissingCert":       {Link{URLs: secure, Cert: "/no/c.pem", Key: foreignKey}, []string{"--tls-cert /no/c.pem: no such file"}},
		"MissingCertAndKey": {Link{URLs: secure, Cert: "/no/c.pem", Key: "/no/k.pem"}, []string{"--tls-cert /no/c.pem: no such file", "; --tls-key /no/k.pem: no such file"}},
		"MissingCreds":      {Link{URLs: users, Creds: "/no/user.creds"}, []string{"--creds /no/user.creds: no such file"}},
		"MissingNkey":       {Link{URLs: users, Nkey: "/no/seed"}, []string{"--nkey /no/seed: no such file"}},
		"NoCertInCA":        {Link{URLs: secure, CA: text}, []string{"--tls-ca " + text, "no certificate"}},
		"NoSeedInNkey":      {Link{URLs: users, Nkey: text}, []string{"--nkey " + text, "no seed"}},
		"AccountSeed":       {Link{URLs: users, Nkey: seedFile(t, nkeys.PrefixByteAccount)}, []string{"--nkey", "no seed of a user"}},
		"NoJWTInCreds":      {Link{URLs: users, Creds: text}, []string{"--creds " + text, "JWT"}},
		"UserWithoutColon":  {Link{URLs: users, User: "s3cret"}, []string{"--user wants NAME:PASSWORD"}},
		"UserWithoutName":   {Link{URLs: users, User: ":s3cret"}, []string{"--user wants NAME:PASSWORD"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			_, err := Connect(t.Context(), tc.link)
			oneLine(t, err, tc.wants...)
			if took := time.Since(begun); took > connectWait+time.Second {
				t.Errorf("took %v, want at most %v", took, connectWait)
			}
		})
	}
}

// seedFile writes a fresh seed.
func seedFile(t *testing.T, kind nkeys.PrefixByte) string {
	t.Helper()
	pair, err := nkeys.CreatePair(kind)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "seed.nk")
	if err := os.WriteFile(path, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whoever gives a secret where a path, a URL or something else belongs does not
// find it in a log.
func TestConnectErrorsHideSecrets(t *testing.T) {
	seed, err := os.ReadFile(seedFile(t, nkeys.PrefixByteUser))
	if err != nil {
		t.Fatal(err)
	}
	const jwt, pem = "eyJ0eXAiOiJKV1QifQ.s3cret.s3cret", "-----BEGIN PRIVATE KEY-----\ns3cret\n-----END PRIVATE KEY-----\n"
	const here = "127.0.0.1:1"
	tests := map[string]struct {
		link   Link
		secret string
	}{
		"SeedAsNkey":      {Link{URLs: here, Nkey: string(seed)}, string(seed)},
		"SeedAsCreds":     {Link{URLs: here, Creds: string(seed)}, string(seed)},
		"JWTAsCreds":      {Link{URLs: here, Creds: jwt}, "s3cret"},
		"PEMAsKey":        {Link{URLs: here, Cert: "/no/c.pem", Key: pem}, "s3cret"},
		"UserAndPassword": {Link{URLs: "nats://user:s3cret@" + here}, "s3cret"},
		"Token":           {Link{URLs: "nats://s3cret@" + here}, "s3cret"},
		"NoScheme":        {Link{URLs: "user:s3cret@" + here}, "s3cret"},
		"SecondServer":    {Link{URLs: "nats://" + here + ",nats://user:s3cret@" + here}, "s3cret"},
		"BadEscape":       {Link{URLs: "nats://user:s3cret/%zz@" + here}, "s3cret"},
		"TwoAts":          {Link{URLs: "nats://user:s3cret@more@127.0.0.1:x"}, "s3cret"},
		"Space":           {Link{URLs: "nats://user:s3cret word@" + here}, "s3cret"},
		"NewLine":         {Link{URLs: "nats://user:s3cret\nmore@" + here}, "s3cret"},
		"EscapedPassword": {Link{URLs: "nats://user:s3%63ret@" + here}, "s3%63ret"},
		"UserFlag":        {Link{URLs: "nats://[::1", User: "me:s3cret"}, "s3cret"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Connect(t.Context(), tc.link)
			oneLine(t, err)
			if strings.Contains(err.Error(), strings.TrimSpace(tc.secret)) {
				t.Errorf("error %q tells the secret", err)
			}
		})
	}
}

// The last net: a library that quotes what it was given.
func TestHideReplacesSecretsByValue(t *testing.T) {
	l := Link{URLs: "nats://user:p%40ssword@a:1,nats://t0ken-x@b:2", Token: "tok-123", User: "me:pw:with:colons"}
	inner := errors.New("x p%40ssword y p@ssword z t0ken-x tok-123 pw:with:colons\nme")
	got := l.hide(inner)
	if want := "x *** y *** z *** *** ***; me"; got.Error() != want || !errors.Is(got, inner) {
		t.Errorf("%q, want %q that wraps the error", got, want)
	}
	if plain := errors.New("nothing to hide"); l.hide(plain) != plain {
		t.Error("an innocent error was replaced")
	}
}

func TestConnectSucceeds(t *testing.T) {
	own := newAuthority(t, "own")
	cert, key := own.issue("client", 2*time.Hour)
	seed := seedFile(t, nkeys.PrefixByteUser)
	content, err := os.ReadFile(seed)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := nkeys.FromSeed(content)
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		server func(*server.Options)
		link   Link
	}{
		"Plain":    {nil, Link{}},
		"Password": {func(o *server.Options) { o.Username, o.Password = "me", "a:b$c" }, Link{User: "me:a:b$c"}},
		"Token":    {func(o *server.Options) { o.Authorization = "tok" }, Link{Token: "tok"}},
		"Nkey":     {func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} }, Link{Nkey: seed}},
		"TLS":      {func(o *server.Options) { o.TLSConfig = own.serverTLS("127.0.0.1", 2*time.Hour, nil) }, Link{CA: own.ca()}},
		"Mutual":   {func(o *server.Options) { o.TLSConfig = own.serverTLS("127.0.0.1", 2*time.Hour, own) }, Link{CA: own.ca(), Cert: cert, Key: key}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.link.URLs = addr(serve(t, tc.server))
			b, err := Connect(t.Context(), tc.link)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if err := b.Setup(t.Context(), Memory); err != nil || !b.Connected() {
				t.Errorf("set-up: %v, connected %v", err, b.Connected())
			}
		})
	}
}

// A patient link waits for the server, and says once that it does.
func TestPatientLinkWaits(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var said []string
	link := Link{URLs: fmt.Sprintf("nats://me:s3cret@127.0.0.1:%d", port), Agent: "a1", Patient: true, Messages: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, text)
	}}
	type outcome struct {
		bus *Bus
		err error
	}
	connected := make(chan outcome, 1)
	go func() {
		b, err := Connect(t.Context(), link)
		connected <- outcome{b, err}
	}()
	select {
	case o := <-connected:
		t.Fatalf("Connect returned %v without a server", o.err)
	case <-time.After(1500 * time.Millisecond): // some tries
	}
	serve(t, func(o *server.Options) { o.Port = port })
	o := <-connected
	if o.err != nil {
		t.Fatal(o.err)
	}
	o.bus.Close()
	mu.Lock()
	defer mu.Unlock()
	if want := []string{fmt.Sprintf("waiting for NATS at nats://***@127.0.0.1:%d", port)}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// A server whose messages are too small for results is refused, however patient the
// link; the default of nats-server is not.
func TestServerOfSmallMessagesIsRefused(t *testing.T) {
	for _, patient := range []bool{false, true} {
		small := addr(serve(t, func(o *server.Options) { o.MaxPayload = wire.MinPayload - 1 }))
		_, err := Connect(t.Context(), Link{URLs: small, Patient: patient})
		oneLine(t, err, "1048575 bytes", "max_payload: 8MB")
	}
	b, err := Connect(t.Context(), Link{URLs: addr(serve(t, func(o *server.Options) { o.MaxPayload = 0 }))})
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
}

func TestPatienceEnds(t *testing.T) {
	t.Run("WithTheContext", func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(enough) })
		if _, err := Connect(ctx, Link{URLs: "127.0.0.1:1", Patient: true}); !errors.Is(err, enough) {
			t.Errorf("err %v, want %v", err, enough)
		}
	})
	t.Run("AtAWrongPassword", func(t *testing.T) {
		users := addr(serve(t, func(o *server.Options) { o.Username, o.Password = "ordeal", "right" }))
		_, err := Connect(t.Context(), Link{URLs: users, User: "ordeal:s3cret-wrong", Patient: true})
		oneLine(t, err, "--user")
	})
	t.Run("AtAnUnknownAuthority", func(t *testing.T) {
		own := newAuthority(t, "own")
		secure := addr(serve(t, func(o *server.Options) { o.TLSConfig = own.serverTLS("127.0.0.1", 2*time.Hour, nil) }))
		_, err := Connect(t.Context(), Link{URLs: secure, Patient: true})
		oneLine(t, err, "--tls-ca")
	})
	t.Run("AtAMissingClientCertificate", func(t *testing.T) {
		own := newAuthority(t, "own")
		mutual := addr(serve(t, func(o *server.Options) { o.TLSConfig = own.serverTLS("127.0.0.1", 2*time.Hour, own) }))
		_, err := Connect(t.Context(), Link{URLs: mutual, CA: own.ca(), Patient: true})
		oneLine(t, err, "--tls-cert")
	})
}

// An agent's answers arrive in an inbox of its own.
func TestAgentHasItsOwnInbox(t *testing.T) {
	b, err := Connect(t.Context(), Link{URLs: addr(serve(t, nil)), Agent: "a1"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got := b.nc.NewInbox(); !strings.HasPrefix(got, wire.InboxPrefix("a1")+".") {
		t.Errorf("inbox %s", got)
	}
}
