package bus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// credentials reads every file once before anything is dialled: what is wrong
// with one is said with its flag, and is no matter of patience.
func (l *Link) credentials() ([]nats.Option, error) {
	var options []nats.Option
	for _, part := range []func() ([]nats.Option, error){l.user, l.nkey, l.creds, l.tls} {
		more, err := part()
		if err != nil {
			return nil, err
		}
		options = append(options, more...)
	}
	return options, nil
}

func (l *Link) user() (options []nats.Option, err error) {
	if l.Token != "" {
		options = append(options, nats.Token(l.Token))
	}
	if l.User != "" {
		name, password, ok := strings.Cut(l.User, ":")
		if !ok || name == "" {
			return nil, errors.New("--user wants NAME:PASSWORD, the password best as a reference such as '${env:NATS_PASSWORD}'")
		}
		options = append(options, nats.UserInfo(name, password))
	}
	return options, nil
}

func (l *Link) nkey() ([]nats.Option, error) {
	if l.Nkey == "" {
		return nil, nil
	}
	if _, err := read("--nkey", l.Nkey); err != nil {
		return nil, err
	}
	key, err := nats.NkeyOptionFromSeed(l.Nkey)
	if err != nil {
		return nil, fmt.Errorf("--nkey %s: holds no seed of a user: want a file with one line that begins with SU", l.Nkey)
	}
	return []nats.Option{key}, nil
}

func (l *Link) creds() ([]nats.Option, error) {
	if l.Creds == "" {
		return nil, nil
	}
	content, err := read("--creds", l.Creds)
	if err != nil {
		return nil, err
	}
	_, jwtErr := nkeys.ParseDecoratedJWT(content)
	_, keyErr := nkeys.ParseDecoratedUserNKey(content)
	if jwtErr != nil || keyErr != nil {
		return nil, fmt.Errorf("--creds %s: holds no user's JWT with its key: want a file as 'nsc generate creds' writes it", l.Creds)
	}
	return []nats.Option{nats.UserCredentials(l.Creds)}, nil
}

func (l *Link) tls() (options []nats.Option, err error) {
	if l.CA != "" {
		content, err := read("--tls-ca", l.CA)
		if err != nil {
			return nil, err
		}
		if !x509.NewCertPool().AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("--tls-ca %s: holds no certificate in PEM form", l.CA)
		}
		options = append(options, nats.RootCAs(l.CA))
	}
	if l.Cert == "" && l.Key == "" {
		return options, nil
	}
	if l.Cert == "" || l.Key == "" {
		return nil, errors.New("--tls-cert and --tls-key belong together: give both")
	}
	_, certErr := read("--tls-cert", l.Cert)
	_, keyErr := read("--tls-key", l.Key)
	if err := errors.Join(certErr, keyErr); err != nil {
		return nil, err
	}
	if _, err := tls.LoadX509KeyPair(l.Cert, l.Key); err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", l.Cert, l.Key, err)
	}
	return append(options, nats.ClientCert(l.Cert, l.Key)), nil
}

// read reads the file of a flag. Its error does not repeat a value that is no
// path: whoever gives a key in place of its file must not find it in a log.
func read(flag, path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err == nil {
		return content, nil
	}
	if looksSecret(path) {
		return nil, fmt.Errorf("%s wants the path of a file, not what is in it", flag)
	}
	var where *fs.PathError
	if errors.As(err, &where) {
		err = where.Err
	}
	return nil, fmt.Errorf("%s %s: %w", flag, path, err)
}

// looksSecret tells a seed, a JWT or a PEM block from a path.
func looksSecret(path string) bool {
	bare := len(path) >= 40 && !strings.ContainsAny(path, "./")
	return bare || strings.HasPrefix(path, "eyJ") || strings.ContainsAny(path, "\n\r") || strings.Contains(path, "-----")
}
