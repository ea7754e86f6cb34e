package prom

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

const (
	alertsFile      = "../../deploy/prometheus/alerts.yaml"
	alertsTestsFile = "../../deploy/prometheus/alerts_test.yaml"
)

// alert is a rule of Prometheus.
type alert struct {
	Alert, Expr string
	Labels      struct{ Severity string }
	Annotations struct{ Summary, Description string }
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	raw, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// TestAlerts: an alert says how bad it is, what has happened and what to do, and
// has a test for promtool.
func TestAlerts(t *testing.T) {
	tests, err := os.ReadFile(alertsTestsFile)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, a := range readAlerts(t) {
		if !regexp.MustCompile(`^Ordeal[A-Za-z]+$`).MatchString(a.Alert) || names[a.Alert] {
			t.Errorf("alert %q: its name is not fit, or taken", a.Alert)
		}
		names[a.Alert] = true
		if !slices.Contains([]string{"critical", "warning"}, a.Labels.Severity) || a.Annotations.Summary == "" || len(a.Annotations.Description) < 100 {
			t.Errorf("%s: %+v", a.Alert, a)
		}
		if !strings.Contains(string(tests), "alertname: "+a.Alert+"\n        exp_alerts:") {
			t.Errorf("%s has no test in which it fires", a.Alert)
		}
	}
	for _, want := range []string{"OrdealAgentLost", "OrdealNoAgents", "OrdealLeaseExpired", "OrdealControllerLeaseNotRenewed",
		"OrdealGeneratorSaturated", "OrdealHighErrorRatio", "OrdealUnitsRedelivered"} {
		if !names[want] {
			t.Errorf("no alert %s", want)
		}
	}
}
