package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewTransport pools connections: idle of them per host are kept, for keep. They
// tell arrival times (StampedConn). HTTP/2 is spoken where a TLS server offers it;
// a proxy of the environment is used, loopback left out. Bodies come as they were
// sent: a compressed stream would arrive in lumps.
func NewTransport(insecure bool, idle int, keep time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dial(ctx, dialer, network, addr)
		},
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: insecure},
		TLSHandshakeTimeout:    15 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        keep,
		MaxResponseHeaderBytes: 1 << 20,
	}
}
