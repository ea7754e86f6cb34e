package mcp

import (
	"time"

	"ordeal/agent/secret"
	"ordeal/agent/wire"
)

// Revisions of the protocol.
const (
	Stateless    = "2026-07-28"
	LatestLegacy = "2025-11-25"
)

var legacyVersions = []string{LatestLegacy, "2025-06-18", "2025-03-26", "2024-11-05"}

// Config says how to reach a server. Values are resolved: references have been
// replaced and made known to the redactor.
type Config struct {
	Transport wire.Transport
	Command   []string      // stdio
	Env       []wire.EnvVar // stdio; added to ours, of which variables that sound secret are withheld
	Dir       string        // stdio; working directory, empty for ours
	Endpoint  string        // http(s) URL; its query goes out byte for byte
	Headers   []wire.Header
	Protocol  string // pinned revision; empty negotiates

	Timeout      time.Duration // per call; 0 means 30 s
	StartTimeout time.Duration // until the handshake answered; 0 means 60 s
	StopGrace    time.Duration // per step of the shut-down; 0 means 3 s
	ProbeTimeout time.Duration // silence after server/discover before initialize is tried; 0 means 1.5 s
	MaxMessage   int64         // bytes of one message; 0 means 64 MiB
	Insecure     bool          // do not verify TLS certificates
	Concurrency  int           // calls at once, sizes the connection pool; 0 means 16
	Progress     bool          // send a progress token with each call

	Name, Version string // of this client, as the server is told
	Redactor      *secret.Redactor
}

func (c Config) withDefaults() Config {
	fill := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	fill(&c.Timeout, 30*time.Second)
	fill(&c.StartTimeout, time.Minute)
	fill(&c.StopGrace, 3*time.Second)
	fill(&c.ProbeTimeout, 1500*time.Millisecond)
	c.ProbeTimeout = min(c.ProbeTimeout, c.StartTimeout/2)
	if c.MaxMessage <= 0 {
		c.MaxMessage = 64 << 20
	}
	if c.Concurrency <= 0 {
		c.Concurrency = 16
	}
	if c.Name == "" {
		c.Name = "ordeal"
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Redactor == nil {
		c.Redactor = new(secret.Redactor)
	}
	return c
}
