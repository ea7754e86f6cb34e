package wire

import (
	"encoding/json"
	"time"
)

// Kind of a target.
type TargetKind string

const (
	Mock      TargetKind = "mock"
	MCP       TargetKind = "mcp"
	OpenAI    TargetKind = "openai"
	Anthropic TargetKind = "anthropic"
	HTTP      TargetKind = "http" // an agent, or anything else, served over plain HTTP
)

// Transport of an MCP target.
type Transport string

const (
	Stdio          Transport = "stdio"
	StreamableHTTP Transport = "streamable-http"
	SSE            Transport = "sse"
)

// Target says how to reach the system under test. Header and environment
// values may be references.
type Target struct {
	Kind      TargetKind `json:"kind"`
	URI       string     `json:"uri"`                 // as the user wrote it, credentials included only as references
	Profile   string     `json:"profile,omitempty"`   // mock
	Transport Transport  `json:"transport,omitempty"` // mcp
	Command   []string   `json:"command,omitempty"`   // stdio
	Endpoint  string     `json:"endpoint,omitempty"`  // http URL
	Headers   []Header   `json:"headers,omitempty"`
	Env       []EnvVar   `json:"env,omitempty"`
	Model     string     `json:"model,omitempty"`
	APIKey    string     `json:"api_key,omitempty"` // reference, llm
	MaxTokens int        `json:"max_tokens,omitempty"`
	Prompt    string     `json:"prompt,omitempty"`
	Protocol  string     `json:"protocol,omitempty"` // pinned MCP revision, empty = negotiate

	Timeout      time.Duration `json:"timeout"`       // per call
	StartTimeout time.Duration `json:"start_timeout"` // process start until the handshake answered
	StopGrace    time.Duration `json:"stop_grace"`    // per step of the shut-down
	Seed         string        `json:"seed"`          // draws of the mock
	Insecure     bool          `json:"insecure,omitempty"`
	Method       string        `json:"method,omitempty"`      // http: GET or POST
	Body         string        `json:"body,omitempty"`        // http: template of the request's body
	Processes    int           `json:"processes,omitempty"`   // stdio: servers that the users are spread over; 0 is 1
	MaxMessage   int64         `json:"max_message,omitempty"` // bytes of one answer; 0 = 64 MiB
}

// Header is one HTTP header; its value may hold references.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// EnvVar is one environment variable of a stdio server.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Survey is what an agent found on connecting: who the target is and what it
// offers.
type Survey struct {
	Name            string          `json:"name"`
	Version         string          `json:"version,omitempty"`
	ProtocolVersion string          `json:"protocol_version,omitempty"`
	Capabilities    json.RawMessage `json:"capabilities,omitempty"`
	Instructions    string          `json:"instructions,omitempty"`
	Tools           []Tool          `json:"tools,omitempty"`
	Virtual         bool            `json:"virtual"`            // latency is reported, not slept
	ReportsUsage    bool            `json:"reports_usage"`      // answers may carry token counts
	OwnRetries      bool            `json:"own_retries"`        // the target runs a retry loop of its own
	Language        string          `json:"language,omitempty"` // python, typescript, go; empty unknown
	StartupUS       int64           `json:"startup_us,omitempty"`
	Notes           []string        `json:"notes,omitempty"`  // protocol findings
	Stderr          string          `json:"stderr,omitempty"` // tail, redacted
}

// Tool is one tool of the catalogue, with what the agent's schema engine could
// make of it.
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	ReadOnly     *bool           `json:"read_only,omitempty"`   // readOnlyHint
	Destructive  *bool           `json:"destructive,omitempty"` // destructiveHint

	Args       json.RawMessage `json:"args,omitempty"`        // synthesized
	ArgsSource string          `json:"args_source,omitempty"` // default, example, ..., placeholder
	ArgsError  string          `json:"args_error,omitempty"`  // why none could be synthesized
	ArgsEmpty  bool            `json:"args_empty,omitempty"`  // a required field could only be left empty
	Required   int             `json:"required"`              // required top-level fields
	Issues     []string        `json:"issues,omitempty"`      // static schema issues
}
