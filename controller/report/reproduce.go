package report

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// flags are the settings that a command line repeats, in its order. Of the
// spec, durations are in nanoseconds.
var flags = []struct {
	setting, flag string
	kind          flagKind
}{
	{"tool", "--tool", plainFlag}, {"tool_args", "--tool-args", plainFlag},
	{"probes", "--probes", listFlag}, {"phases", "--phases", listFlag},
	{"requests", "--requests", plainFlag}, {"concurrency", "--concurrency", plainFlag},
	{"rate", "--rate", plainFlag}, {"max_in_flight", "--max-in-flight", plainFlag},
	{"level_duration", "--level-duration", durationFlag}, {"warmup", "--warmup", plainFlag},
	{"timeout", "--timeout", durationFlag},
	{"fault_rate", "--fault-rate", plainFlag}, {"max_retries", "--max-retries", plainFlag},
	{"backoff_max", "--backoff-max", durationFlag}, {"backoff_budget", "--backoff-budget", durationFlag},
	{"seed", "--seed", plainFlag}, {"allow_mutating", "--allow-mutating", switchFlag},
	{"verify_tool", "--verify-tool", plainFlag}, {"verify_args", "--verify-args", plainFlag},
	{"verify_count", "--verify-count", plainFlag},
	{"contract_tools", "--contract-tools", plainFlag}, {"contract_cases", "--contract-cases", plainFlag},
	{"price_in", "--price-in", plainFlag}, {"price_out", "--price-out", plainFlag},
	{"price_file", "--price-file", plainFlag}, {"policy", "--policy", plainFlag}, {"agents", "--agents", plainFlag},
}

type flagKind uint8

const (
	plainFlag flagKind = iota
	listFlag
	durationFlag
	switchFlag
)

// reproduce is the command that runs the same scan again.
func (r *reading) reproduce() string {
	parts := []string{"ordeal " + cmp.Or(clean(r.Command), "scan") + " " + shellQuote(r.Target.URI)}
	for _, f := range flags {
		if value, ok := flagValue(r.spec[f.setting], f.kind); ok {
			parts = append(parts, strings.TrimSpace(f.flag+" "+value))
		}
	}
	return joinCommand(parts, MaxWidth)
}

// joinCommand breaks a command over lines of about the given width.
func joinCommand(parts []string, width int) string {
	lines := []string{parts[0]}
	for _, part := range parts[1:] {
		last := len(lines) - 1
		if columns(lines[last])+len(part)+3 > width {
			lines = append(lines, "  "+part)
			continue
		}
		lines[last] += " " + part
	}
	return strings.Join(lines, " \\\n")
}

// flagValue is the quoted value of a setting; ok is false when it is absent
// or says nothing.
func flagValue(raw json.RawMessage, kind flagKind) (string, bool) {
	if len(raw) == 0 || slices.Contains([]string{"null", `""`, "0", "[]"}, string(raw)) {
		return "", false
	}
	switch kind {
	case switchFlag:
		return "", string(raw) == "true"
	case listFlag:
		list := decode[[]string](raw)
		return shellQuote(strings.Join(list, ",")), len(list) > 0
	case durationFlag:
		d := decode[time.Duration](raw)
		return d.String(), d > 0
	}
	if text := decode[*string](raw); text != nil {
		return shellQuote(*text), true
	}
	return shellQuote(string(raw)), true
}

// shellQuote quotes a word for a POSIX shell; what is not printable shows as
// an escape, so the line is safe to look at and to paste.
func shellQuote(s string) string {
	s = clean(s)
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=@%+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// hasDuration tells the settings that hold nanoseconds.
func hasDuration(setting string) bool {
	if setting == "scan_timeout" {
		return true
	}
	for _, f := range flags {
		if f.setting == setting {
			return f.kind == durationFlag
		}
	}
	return false
}
