package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// JSON is the spec as a report shows it: durations as text, and of headers and
// environment variables the names only.
func (s *Spec) JSON() (json.RawMessage, error) {
	shown := *s
	shown.Load = s.Load.Shown()
	raw, err := json.Marshal(&shown)
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	fields := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a float64 would change an integer above 2^53 in the arguments
	if err := dec.Decode(&fields); err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	for key, d := range map[string]time.Duration{
		"level_duration": s.LevelDuration, "timeout": s.Timeout, "scan_timeout": s.ScanTimeout,
		"backoff_max": s.BackoffMax, "backoff_budget": s.BackoffBudget,
	} {
		fields[key] = d.String()
	}
	if l, ok := fields["load"].(map[string]any); ok {
		for key, d := range map[string]time.Duration{"duration": s.Load.Duration, "warmup_time": s.Load.WarmupTime, "think": s.Load.Think} {
			l[key] = d.String()
		}
		delete(l, "profile") // as written in stages
		for _, key := range []string{"probes", "phases", "requests", "concurrency", "rate", "level_duration", "fault_rate", "max_retries", "contract_tools", "contract_cases"} {
			delete(fields, key) // of a scan
		}
	}
	var headers, env []string
	for _, h := range s.Target.Headers {
		headers = append(headers, h.Name)
	}
	for _, e := range s.Target.Env {
		env = append(env, e.Name)
	}
	fields["headers"], fields["env"] = headers, env
	if isModel(s.Target.Kind) && s.Target.Endpoint != "" {
		fields["base_url"] = Display(s.Target.Endpoint)
	}
	return json.Marshal(fields)
}
