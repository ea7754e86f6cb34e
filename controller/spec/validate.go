package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ordeal/agent/wire"
)

const ppb = 1_000_000_000

// Validate parses the target, fills what hangs on it and checks everything. It
// reports all problems at once, one line each.
func (s *Spec) Validate() error {
	var problems []error
	add := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	add(s.resolveTarget())
	if s.Load != nil {
		add(s.fillLoad())
	}
	if s.Requests == 0 {
		s.Requests = DefaultRequests(s.Target.Kind)
	}
	if s.ScanTimeout == 0 {
		s.ScanTimeout = s.defaultScanTimeout()
	}
	s.MilliRate = int64(math.Round(s.Rate * 1000))
	s.FaultRatePPB = int64(math.Round(s.FaultRate * ppb))
	s.Target.Timeout, s.Target.Seed = s.Timeout, s.Seed
	if s.Load == nil {
		add(s.checkNames())
	}
	add(s.checkNumbers())
	add(s.checkReach())
	add(s.checkArgs())
	return errors.Join(problems...)
}

// timedStages bounds how many stages can last --level-duration: latency, the 13
// levels of the widest ramp, degradation, and room for their ends.
const timedStages = 16

// defaultScanTimeout is max(1 min, timeout x requests x 4) plus what timed
// levels may last; the largest duration where that does not fit one.
func (s *Spec) defaultScanTimeout() time.Duration {
	const most = time.Duration(math.MaxInt64)
	byCalls, timed := most, most
	if calls := int64(max(s.Requests, 1)) * 4; s.Timeout <= most/time.Duration(calls) {
		byCalls = max(time.Minute, s.Timeout*time.Duration(calls))
	}
	if s.LevelDuration <= most/timedStages {
		timed = max(0, s.LevelDuration) * timedStages
	}
	return byCalls + min(timed, most-byCalls)
}

// resolveTarget parses TargetText and keeps what flags had set on Target.
func (s *Spec) resolveTarget() error {
	t, err := ParseTarget(s.TargetText)
	if err != nil {
		return err
	}
	set := s.Target
	set.Kind, set.URI, set.Profile, set.Transport = t.Kind, t.URI, t.Profile, t.Transport
	set.Command, set.Model, set.Method = t.Command, t.Model, t.Method
	if t.Endpoint != "" {
		if set.Endpoint != "" && set.Endpoint != t.Endpoint {
			return fmt.Errorf("--base-url is for openai: and anthropic: targets, not for %s", t.URI)
		}
		set.Endpoint = t.Endpoint
	}
	s.Target = set
	s.TargetText = Display(s.TargetText)
	return nil
}

func (s *Spec) checkNames() error {
	var problems []error
	for _, p := range s.Probes {
		problems = append(problems, oneOf("probe", p, AllProbes))
	}
	for _, p := range s.Phases {
		problems = append(problems, oneOf("phase", p, AllPhases))
	}
	if len(s.Probes) == 0 || len(s.Phases) == 0 {
		problems = append(problems, errors.New("no probe selected: give --probes and --phases at least one name, or all"))
	}
	if s.Selected("behavior") && !s.Selected("fault") {
		problems = append(problems, errors.New("behavior sends nothing: it analyses the trajectories of the fault probe; add fault to --probes and chaos to --phases"))
	}
	return errors.Join(problems...)
}

func (s *Spec) checkNumbers() error {
	var problems []error
	// ok is said positively everywhere, so that NaN meets no bound.
	must := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	must(s.Requests >= 1 && s.Requests <= 1e9, "--requests is %d: want 1 to 1000000000", s.Requests)
	must(s.Load != nil || s.Concurrency >= 1 && s.Concurrency <= 4096, "--concurrency is %d: want 1 to 4096", s.Concurrency)
	must(s.Load != nil || s.Rate >= 0 && s.Rate <= 1e6, "--rate is %g: want 0 (closed loop) to 1000000 calls/s", s.Rate)
	must(s.Load != nil || s.Rate == 0 || s.MilliRate > 0, "--rate is %g: the lowest rate is 0.001 calls/s", s.Rate)
	must(s.MaxInFlight >= 1 && s.MaxInFlight <= 1e6, "--max-in-flight is %d: want 1 to 1000000", s.MaxInFlight)
	must(s.Warmup >= 0 && s.Warmup <= 1e6, "--warmup is %d: want 0 to 1000000", s.Warmup)
	must(s.Timeout > 0, "--timeout is %v: want more than 0", s.Timeout)
	must(s.ScanTimeout > 0, "--%s is %v: want more than 0", s.TimeoutFlag(), s.ScanTimeout)
	must(s.Target.StartTimeout > 0, "--start-timeout is %v: want more than 0", s.Target.StartTimeout)
	must(s.LevelDuration >= 0, "--level-duration is %v: want 0 (by count) or more", s.LevelDuration)
	must(s.FaultRate >= 0 && s.FaultRatePPB < ppb, "--fault-rate is %g: want a probability from 0 to below 1 (at 1 every attempt is faulted and nothing could recover)", s.FaultRate)
	must(s.MaxRetries >= 1 && s.MaxRetries <= 100, "--max-retries is %d: want 1 to 100 (at 0 the recovery floor is 0 and proves nothing)", s.MaxRetries)
	must(s.BackoffMax >= 0, "--backoff-max is %v: want 0 (never wait) or more", s.BackoffMax)
	must(s.BackoffBudget >= 0, "--backoff-budget is %v: want 0 (never wait) or more", s.BackoffBudget)
	must(s.Agents >= 1 && s.Agents <= 64, "--agents is %d: want 1 to 64 in one process", s.Agents)
	must(s.ContractTools >= 1 && s.ContractTools <= 1e4, "--contract-tools is %d: want 1 to 10000", s.ContractTools)
	must(s.ContractCases >= 1 && s.ContractCases <= 1e5, "--contract-cases is %d: want 1 to 100000", s.ContractCases)
	must(s.PriceIn >= 0 && s.PriceIn <= 1e9, "--price-in is %g: want 0 to 1000000000 USD per million tokens", s.PriceIn)
	must(s.PriceOut >= 0 && s.PriceOut <= 1e9, "--price-out is %g: want 0 to 1000000000 USD per million tokens", s.PriceOut)
	must((s.PriceIn > 0) == (s.PriceOut > 0), "--price-in and --price-out go together: give both or neither")
	return errors.Join(problems...)
}

// checkReach refuses what the chosen transport would silently ignore.
func (s *Spec) checkReach() error {
	t := &s.Target
	overHTTP := t.Transport == wire.StreamableHTTP || t.Transport == wire.SSE || toolless(t.Kind)
	switch {
	case t.Kind == "":
		return nil // reported by resolveTarget
	case t.APIKey != "" && !isModel(t.Kind):
		return fmt.Errorf("--api-key is for openai: and anthropic: targets, not for %s: use --header or --env", t.URI)
	case t.Prompt != "" && !isModel(t.Kind):
		return fmt.Errorf("--prompt is for openai: and anthropic: targets, not for %s: use --tool-args", t.URI)
	case t.Protocol != "" && t.Kind != wire.MCP:
		return fmt.Errorf("--protocol pins a revision of mcp, which %s does not speak", t.URI)
	case len(t.Headers) > 0 && !overHTTP:
		return fmt.Errorf("--header is for http and llm targets, not for %s: use --env for a stdio server", t.URI)
	case len(t.Env) > 0 && t.Transport != wire.Stdio:
		return fmt.Errorf("--env is for stdio servers, not for %s: use --header", t.URI)
	case t.Endpoint != "" && !overHTTP:
		return fmt.Errorf("--base-url is for openai: and anthropic: targets, not for %s", t.URI)
	case t.Body != "" && t.Method != "POST":
		return fmt.Errorf("--body is for http-post: targets, not for %s", t.URI)
	case s.Tool != "" && toolless(t.Kind):
		return fmt.Errorf("--tool is for mcp and mock targets, not for %s", t.URI)
	case s.ToolArgs != nil && t.Kind == wire.HTTP:
		return fmt.Errorf("--tool-args is for mcp and mock targets, not for %s: use --body", t.URI)
	case s.ToolArgs != nil && isModel(t.Kind):
		return fmt.Errorf("--tool-args is for mcp and mock targets, not for %s: use --prompt", t.URI)
	}
	return nil
}

func isModel(k wire.TargetKind) bool { return k == wire.OpenAI || k == wire.Anthropic }

func (s *Spec) checkArgs() error {
	var problems []error
	if s.ToolArgs != nil {
		problems = append(problems, object("--tool-args", s.ToolArgs))
		if s.Tool == "" && !toolless(s.Target.Kind) {
			problems = append(problems, errors.New("--tool-args needs --tool: name the tool the arguments are for"))
		}
	}
	if s.VerifyTool == "" && (s.VerifyArgs != nil || s.VerifyCount != "") {
		problems = append(problems, errors.New("--verify-args and --verify-count need --verify-tool"))
	}
	if s.VerifyArgs != nil {
		problems = append(problems, object("--verify-args", s.VerifyArgs))
	}
	if s.VerifyTool != "" && !s.AllowMutating {
		problems = append(problems, errors.New("--verify-tool counts the writes of a mutating tool: add --allow-mutating and point the scan at something disposable"))
	}
	if s.VerifyTool != "" && !slices.Contains(s.Probes, "fault") {
		problems = append(problems, errors.New("--verify-tool reads around the recovery pass: add fault to --probes"))
	}
	return errors.Join(problems...)
}

// object checks that raw is one JSON object, and says where it is not.
func object(flag string, raw json.RawMessage) error {
	var v map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(raw))
	err := dec.Decode(&v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s is not valid JSON at byte %d: %v; want an object such as '{\"query\": \"hello\"}'", flag, syntax.Offset, err)
	case errors.As(err, &kind):
		return fmt.Errorf("%s is a JSON %s: want an object such as '{\"query\": \"hello\"}'", flag, kind.Value)
	case err != nil:
		return fmt.Errorf("%s is not valid JSON: %v; want an object such as '{\"query\": \"hello\"}'", flag, err)
	case v == nil:
		return fmt.Errorf("%s is null: want an object such as '{\"query\": \"hello\"}'", flag)
	case !json.Valid(raw): // dec.More would take a stray bracket for an end
		return fmt.Errorf("%s has text after the object at byte %d", flag, dec.InputOffset())
	}
	return nil
}
