package check

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"
)

// parse fails on what is no PromQL, and on types that do not fit.
func parse(t *testing.T, where, expr string) {
	t.Helper()
	// Grafana puts the interval in; the other variables stand in quotes.
	expr = strings.ReplaceAll(expr, "$__rate_interval", "1m")
	if _, err := parser.NewParser(parser.Options{}).ParseExpr(expr); err != nil {
		t.Errorf("%s: %v\n%s", where, err, expr)
	}
}

func TestAlerts(t *testing.T) {
	raw, err := os.ReadFile("../alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			parse(t, rule.Alert, rule.Expr)
			n++
		}
	}
	if n < 7 {
		t.Errorf("%d rules were read", n)
	}
}

func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("../../grafana/ordeal.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			parse(t, panel.Title, target.Expr)
			n++
		}
	}
	for _, a := range dashboard.Annotations.List {
		parse(t, a.Name, a.Expr)
	}
	if n < 40 {
		t.Errorf("%d expressions were read", n)
	}
}
