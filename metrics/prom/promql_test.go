package prom

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
)

// Enough of PromQL to find names in it. Whether it is PromQL at all is checked
// by its own parser, in deploy/prometheus/check.
var (
	promSeries   = regexp.MustCompile(`\b((?:ordeal|go|process|promhttp)_\w+|up)\b`)
	promQuoted   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	promBraces   = regexp.MustCompile(`\{([^}]*)\}`)
	promMatcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	promGrouping = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	promVariable = regexp.MustCompile(`^label_values\(.*,\s*(\w+)\)$`)
)

// selected are the names of series in an expression.
func selected(expr string) []string {
	return promSeries.FindAllString(promQuoted.ReplaceAllString(expr, `""`), -1)
}

// labelsIn are the labels that an expression matches or groups by.
func labelsIn(expr string) []string {
	expr = promQuoted.ReplaceAllString(expr, `""`)
	var labels []string
	for _, braces := range promBraces.FindAllStringSubmatch(expr, -1) {
		for _, m := range promMatcher.FindAllStringSubmatch(braces[1], -1) {
			labels = append(labels, m[1])
		}
	}
	for _, list := range promGrouping.FindAllStringSubmatch(expr, -1) {
		labels = append(labels, strings.FieldsFunc(list[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	if v := promVariable.FindStringSubmatch(expr); v != nil {
		labels = append(labels, v[1])
	}
	return labels
}

// family is what exposes a series; _bucket, _sum and _count are parts of a
// histogram and of nothing else.
func family(families map[string]*dto.MetricFamily, series string) *dto.MetricFamily {
	if f := families[series]; f != nil {
		return f
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(series, part); ok && families[name].GetType() == dto.MetricType_HISTOGRAM {
			return families[name]
		}
	}
	return nil
}

func labelsOf(f *dto.MetricFamily) (labels []string) {
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if !slices.Contains(labels, l.GetName()) {
				labels = append(labels, l.GetName())
			}
		}
	}
	return labels
}

func TestPromQL(t *testing.T) {
	expr := `sum by (state, job) (rate(ordeal_a_total{job=~"ordeal_x|{y=z}", state != "up"}[1m])) / on (instance) up > 0`
	if diff := cmp.Diff([]string{"ordeal_a_total", "up"}, selected(expr)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"job", "state", "state", "job", "instance"}, labelsIn(expr)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"job", "instance"}, labelsIn(`label_values(ordeal_build_info{job=~"$job"}, instance)`)); diff != "" {
		t.Error(diff)
	}
	families := map[string]*dto.MetricFamily{"h": {Name: new("h"), Type: new(dto.MetricType_HISTOGRAM)}, "c": {Name: new("c"), Type: new(dto.MetricType_COUNTER)}}
	for series, want := range map[string]string{"h": "h", "h_bucket": "h", "h_sum": "h", "h_count": "h", "c": "c", "c_sum": "", "h_max": "", "x": ""} {
		if got := family(families, series).GetName(); got != want {
			t.Errorf("%s is of %q, want %q", series, got, want)
		}
	}
}
