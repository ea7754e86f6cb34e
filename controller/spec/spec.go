// Package spec is what the user asked for: the words of the command line and
// of scan.yaml, checked and with every default filled in.
//
// In go bytes and flags; out comes a Spec. It never touches the target, reads
// no clock and resolves no secret: references stay references.
package spec

import (
	"encoding/json"
	"time"

	"ordeal/agent/wire"
)

// Spec of a scan. Default fills what has a default; Validate checks the whole
// and derives the unexported-by-name fields marked "derived".
type Spec struct {
	TargetText string      `json:"target"`
	Target     wire.Target `json:"-"` // derived; its reach (headers, env, base URL) is set from flags

	Tool     string          `json:"tool,omitempty"`
	ToolArgs json.RawMessage `json:"tool_args,omitempty"` // nil = synthesize

	Probes []string `json:"probes"` // of AllProbes
	Phases []string `json:"phases"` // of AllPhases

	Requests      int           `json:"requests"`       // per probe, or per level; 0 = default of the target kind
	Concurrency   int           `json:"concurrency"`    // ceiling of the ramp
	Rate          float64       `json:"rate,omitempty"` // calls per second; 0 = closed loop
	MilliRate     int64         `json:"-"`              // derived
	MaxInFlight   int           `json:"max_in_flight"`
	LevelDuration time.Duration `json:"level_duration,omitempty"` // of each load stage, in place of Requests; 0 = by count
	Warmup        int           `json:"warmup"`
	Timeout       time.Duration `json:"timeout"`
	ScanTimeout   time.Duration `json:"scan_timeout"` // 0 = max(60 s, timeout x requests x 4) + 16 x level duration

	FaultRate     float64       `json:"fault_rate"`
	FaultRatePPB  int64         `json:"-"` // derived
	MaxRetries    int           `json:"max_retries"`
	BackoffMax    time.Duration `json:"backoff_max"`
	BackoffBudget time.Duration `json:"backoff_budget"`
	Seed          string        `json:"seed"`

	AllowMutating bool            `json:"allow_mutating"`
	VerifyTool    string          `json:"verify_tool,omitempty"`
	VerifyArgs    json.RawMessage `json:"verify_args,omitempty"`
	VerifyCount   string          `json:"verify_count,omitempty"` // dotted path to the list of entries
	ContractTools int             `json:"contract_tools"`
	ContractCases int             `json:"contract_cases"` // per tool

	PriceIn   float64 `json:"price_in,omitempty"` // USD per 10^6 tokens
	PriceOut  float64 `json:"price_out,omitempty"`
	PriceFile string  `json:"price_file,omitempty"`

	Load *Load `json:"load,omitempty"` // of a load test, which has no probes

	Policy string `json:"policy,omitempty"` // file; empty = built in
	Agents int    `json:"agents"`
}

// Probe names in the order they run, and the phases they belong to.
var (
	AllProbes = []string{"latency", "cost", "concurrency", "contract", "fault", "behavior"}
	AllPhases = []string{"baseline", "chaos", "behavior"}
)

// PhaseOf names the phase of a probe.
func PhaseOf(probe string) string {
	switch probe {
	case "fault":
		return "chaos"
	case "behavior", "load":
		return probe
	}
	return "baseline"
}

// Default returns a Spec with every default but those that hang on the kind of
// target (Requests, ScanTimeout), which Validate fills.
func Default() Spec {
	return Spec{
		Probes: AllProbes, Phases: AllPhases,
		Concurrency: 8, MaxInFlight: 256, Warmup: 1, Timeout: 30 * time.Second,
		FaultRate: 0.2, MaxRetries: 2, BackoffMax: 5 * time.Second, BackoffBudget: 30 * time.Second, Seed: "1337",
		ContractTools: 3, ContractCases: 200, Agents: 1,
		Target: wire.Target{StartTimeout: 60 * time.Second, StopGrace: 2 * time.Second, MaxTokens: 256},
	}
}

// DefaultRequests per probe: an LLM call costs money, any other does not.
func DefaultRequests(kind wire.TargetKind) int {
	if kind == wire.OpenAI || kind == wire.Anthropic {
		return 5
	}
	return 100
}

// Selected reports whether a probe was asked for, by name and by phase.
func (s *Spec) Selected(probe string) bool {
	return contains(s.Probes, probe) && contains(s.Phases, PhaseOf(probe))
}

func contains(list []string, word string) bool {
	for _, w := range list {
		if w == word {
			return true
		}
	}
	return false
}
