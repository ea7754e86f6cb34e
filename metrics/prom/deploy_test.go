package prom

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// notShown are series that the dashboard leaves out, with the reason. Alerts may
// use them all the same.
var notShown = map[string]string{}

// foreign are the names that Prometheus itself makes, and the labels it adds.
var (
	foreign       = []string{"up"}
	scraperLabels = []string{"job", "instance", "le"}
)

// deployed has every expression in deploy/, by where it stands.
func deployed(t *testing.T) map[string]string {
	t.Helper()
	d := readDashboard(t)
	all := d.expressions()
	for _, a := range readAlerts(t) {
		all["alert "+a.Alert] = a.Expr
	}
	return all
}

// exposed has every family that an agent and a controller show, once each method
// was called.
func exposed(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	a, c := calledOnce()
	return scrape(t, start(t, Options{Version: "0.1.0"}, a, c), acceptProto)
}

// TestSeriesExist: every name in deploy/ is one that is really exposed, with the
// labels it is used with.
func TestSeriesExist(t *testing.T) {
	families, all := exposed(t), deployed(t)
	if len(all) < 50 {
		t.Errorf("%d expressions: the check proves little", len(all))
	}
	for where, expr := range all {
		found := selected(expr)
		if len(found) == 0 {
			t.Errorf("%s selects nothing: %s", where, expr)
		}
		var labels []string
		for _, name := range found {
			f := family(families, name)
			if f == nil && !slices.Contains(foreign, name) {
				t.Errorf("%s: nothing exposes %s", where, name)
			}
			labels = append(labels, labelsOf(f)...)
		}
		for _, l := range labelsIn(expr) {
			if !slices.Contains(labels, l) && !slices.Contains(scraperLabels, l) {
				t.Errorf("%s: %v have no label %s", where, found, l)
			}
		}
	}
}

// TestStates: the values of labels that expressions ask for are among those
// exposed, else an alert would never fire and nobody would know.
func TestStates(t *testing.T) {
	families, looked := exposed(t), 0
	for _, expr := range deployed(t) {
		for _, m := range regexp.MustCompile(`(\w+)\{([^}]*)\}`).FindAllStringSubmatch(expr, -1) {
			for _, pair := range regexp.MustCompile(`\b(outcome|state|reason)(?:=|!=|=~|!~)"([^"]*)"`).FindAllStringSubmatch(m[2], -1) {
				for value := range strings.SplitSeq(pair[2], "|") {
					looked++
					if !hasValue(family(families, m[1]), pair[1], value) {
						t.Errorf("no series %s{%s=%q}: %s", m[1], pair[1], value, expr)
					}
				}
			}
		}
	}
	if looked < 30 {
		t.Errorf("looked at %d values", looked)
	}
}

func hasValue(f *dto.MetricFamily, label, value string) bool {
	return slices.ContainsFunc(f.GetMetric(), func(m *dto.Metric) bool {
		return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label && l.GetValue() == value })
	})
}

// TestEverythingShown: a series of ours that no panel uses is listed in notShown.
func TestEverythingShown(t *testing.T) {
	shown, d, families := map[string]bool{}, readDashboard(t), exposed(t)
	for _, expr := range d.expressions() {
		for _, name := range selected(expr) {
			if f := family(families, name); f != nil {
				shown[f.GetName()] = true
			}
		}
	}
	for name := range families {
		_, listed := notShown[name]
		if strings.HasPrefix(name, "ordeal_") && shown[name] == listed {
			t.Errorf("%s: on the dashboard %v, in notShown %v", name, shown[name], listed)
		}
	}
	for name := range notShown {
		if families[name] == nil {
			t.Errorf("notShown has %s, which is not exposed", name)
		}
	}
}
