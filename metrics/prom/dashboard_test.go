package prom

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const dashboardFile = "../../deploy/grafana/ordeal.json"

// source is the data source of a part of the dashboard.
type source struct{ UID string }

// panel of the dashboard, as far as it is checked.
type panel struct {
	ID          int
	Title, Type string
	Description string
	Datasource  source
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		RefID, Expr string
		Datasource  source
	}
}

type dashboard struct {
	UID           string
	SchemaVersion int
	Panels        []panel
	Annotations   struct {
		List []struct {
			Name, Expr string
			Datasource source
		}
	}
	Templating struct {
		List []struct {
			Name, Type, Definition string
			Datasource             source
		}
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	raw, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// expressions of the dashboard by where they stand, those of variables and
// annotations included.
func (d *dashboard) expressions() map[string]string {
	all := map[string]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all["panel "+p.Title+" "+target.RefID] = target.Expr
		}
	}
	for _, a := range d.Annotations.List {
		all["annotation "+a.Name] = a.Expr
	}
	for _, v := range d.Templating.List {
		if v.Definition != "" {
			all["variable "+v.Name] = v.Definition
		}
	}
	return all
}

// TestVariables: no data source is named but through the variable.
func TestVariables(t *testing.T) {
	d, variables := readDashboard(t), map[string]string{}
	for _, v := range d.Templating.List {
		variables[v.Name] = v.Type
		if v.Type == "query" && v.Datasource.UID != "${datasource}" {
			t.Errorf("variable %s asks %q", v.Name, v.Datasource.UID)
		}
	}
	if diff := cmp.Diff(map[string]string{"datasource": "datasource", "job": "query", "instance": "query"}, variables); diff != "" {
		t.Error(diff)
	}
	for _, a := range d.Annotations.List {
		if a.Datasource.UID != "${datasource}" {
			t.Errorf("annotation %s asks %q", a.Name, a.Datasource.UID)
		}
	}
}

// TestDashboard: what Grafana needs to load it, and a person to read it.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.UID != "ordeal" || d.SchemaVersion < 41 || len(d.Panels) < 25 {
		t.Errorf("uid %q, schema %d, %d panels", d.UID, d.SchemaVersion, len(d.Panels))
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %q: id %d is not its own, or it has no title", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, taken := cells[cell]; taken || cell[0] >= 24 {
					t.Fatalf("panel %q lies over %q at %v, or beyond the grid", p.Title, other, cell)
				}
				cells[cell] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q: description %q, data source %q, %d targets", p.Title, p.Description, p.Datasource.UID, len(p.Targets))
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" || !strings.Contains(target.Expr, `job=~"$job",instance=~"$instance"`) {
				t.Errorf("panel %q %s heeds not every variable: %s", p.Title, target.RefID, target.Expr)
			}
		}
	}
}
