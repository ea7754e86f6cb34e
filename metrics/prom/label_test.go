package prom

import (
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// Secrets and addresses as they could come where a name is expected.
var hostile = []string{
	"https://user:hunter2@api.example.com/v1/mcp?token=sesame", "nats://agent:s3cr3t@10.0.0.7:4222", "Bearer abc.def",
	"sk-proj-aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5z", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE",
	"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
	`{"query": "select * from users"}`, "two words", "a\nordeal_fake_total 1", "tab\there", "naïve", "\xff\xfe", strings.Repeat("x", 300), `"} 1`,
	"20261201-093600-0123456789\n", "scan --token sesame",
}

// TestHostile gives every method that takes a string what it should never get:
// none of it is shown, and no series is new.
func TestHostile(t *testing.T) {
	for _, text := range hostile {
		a, c := NewAgent(AgentInfo{Version: text, ID: text, Zone: text, Pool: text}), NewController()
		c.RunStarted(text, text)
		c.RunState(State(text))
		c.Halted(Halt(text))
		families := scrape(t, start(t, Options{}, a, c), acceptProto)
		for name, want := range map[string]int{"ordeal_agent_info": 1, "ordeal_run_info": 1, "ordeal_run_state": len(states), "ordeal_halts_total": len(halts)} {
			if got := len(families[name].GetMetric()); got != want {
				t.Errorf("%q: %d series of %s, want %d", text, got, name, want)
			}
		}
		for name, f := range families {
			if strings.HasPrefix(name, "ordeal_") {
				checkLabels(t, f, text)
			}
		}
	}
}

func checkLabels(t *testing.T, f *dto.MetricFamily, text string) {
	t.Helper()
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			v := l.GetValue()
			if strings.Contains(v, strings.TrimSpace(text)) || len(v) > 128 || strings.ContainsAny(v, "/:@?=\"{}\n\t ") {
				t.Errorf("%s shows %s=%q", f.GetName(), l.GetName(), v)
			}
		}
	}
}

// TestBounded: how many series there can be at all.
func TestBounded(t *testing.T) {
	a, c := calledOnce()
	for _, text := range hostile {
		c.RunStarted(text, text)
		c.Halted(Halt(text))
		c.RunState(State(text))
	}
	series := 0
	for name, f := range scrape(t, start(t, Options{}, a, c), acceptProto) {
		if strings.HasPrefix(name, "ordeal_") {
			series += len(f.GetMetric())
		}
	}
	if series > 70 {
		t.Errorf("%d series of ours", series)
	}
}

func TestNames(t *testing.T) {
	command := func(s string) string { return oneOf(commands, s) }
	for _, row := range []struct {
		of   func(string) string
		text string
		want string
	}{
		{name, "", ""},
		{name, "host-17", "host-17"},
		{name, "ordeal-agent-7d9f8b6c5d-x2x4z-1", "ordeal-agent-7d9f8b6c5d-x2x4z-1"},
		{name, "ip-10-0-0-7.eu-central-1.compute.internal-4711", "ip-10-0-0-7.eu-central-1.compute.internal-4711"},
		{name, "i-0123456789abcdef0", "i-0123456789abcdef0"},
		{name, "5f4dcc3b-5aa7-65d6-1d83-27deb882cf99", "5f4dcc3b-5aa7-65d6-1d83-27deb882cf99"},
		{name, "averylonghostnamewithoutdigits-1", "averylonghostnamewithoutdigits-1"},
		{name, "default,gpu_2", "default,gpu_2"},
		{name, "eu/1", "invalid"},
		{name, "abcdefghij0123456789", "redacted"},
		{version, "0.1.0", "0.1.0"},
		{version, "(devel)", "(devel)"},
		{version, "v0.0.0-20261201093600-0123456789ab+dirty", "v0.0.0-20261201093600-0123456789ab+dirty"},
		{version, "", "invalid"},
		{runID, "20261201-093600-0123456789", "20261201-093600-0123456789"},
		{runID, "latest", "invalid"},
		{runID, "20261201-093600-0123456789-and-more", "invalid"},
		{runID, "", "invalid"},
		{command, "eval", "eval"},
		{command, "Scan", "other"},
		{command, "", "other"},
	} {
		if got := row.of(row.text); got != row.want {
			t.Errorf("%q is shown as %q, want %q", row.text, got, row.want)
		}
	}
}
