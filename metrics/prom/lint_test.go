package prom

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/testing/protocmp"
)

// TestLint holds every name, help text and type against the linter of
// Prometheus, as promtool check metrics does.
func TestLint(t *testing.T) {
	a, c := calledOnce()
	text, _ := get(t, start(t, Options{Version: "0.1.0"}, a, c), "/metrics", acceptText, http.StatusOK)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if n := strings.Count(text, "# TYPE ordeal_"); n < 30 {
		t.Errorf("%d families of ours were linted", n)
	}
}

// TestText reads the text form with the official parser: each histogram has its
// classic buckets there, in order, and the same counts as in protobuf.
func TestText(t *testing.T) {
	a, c := calledOnce()
	s := start(t, Options{Version: "0.1.0"}, a, c)
	text, _ := get(t, s, "/metrics", acceptText, http.StatusOK)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	proto, histograms := scrape(t, s, acceptProto), 0
	for name, f := range families {
		if !strings.HasPrefix(name, "ordeal_") {
			continue
		}
		if f.GetHelp() == "" || f.GetType() != proto[name].GetType() {
			t.Errorf("%s: type %v, want %v; help %q", name, f.GetType(), proto[name].GetType(), f.GetHelp())
		}
		for i, m := range f.GetMetric() {
			if m.GetHistogram() == nil {
				continue
			}
			histograms++
			want := proto[name].GetMetric()[i].GetHistogram()
			checkNative(t, name, want)
			if diff := cmp.Diff(classicOf(want), classicOf(m.GetHistogram()), protocmp.Transform()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
	if histograms != len(durationOutcomes)+2 { // and the lag, and the skew
		t.Errorf("%d histograms", histograms)
	}
}

// classicOf is the part of a histogram that both forms have; text states the
// bucket of everything, protobuf leaves it to the count.
func classicOf(h *dto.Histogram) *dto.Histogram {
	buckets := h.GetBucket()
	if n := len(buckets); n > 0 && buckets[n-1].GetUpperBound() > 1e9 {
		buckets = buckets[:n-1]
	}
	return &dto.Histogram{SampleCount: h.SampleCount, SampleSum: h.SampleSum, Bucket: buckets}
}

// checkNative decodes spans and deltas as a reader does: the buckets of a span
// lie side by side, each delta is against the bucket before, and all of it sums
// up to the count.
func checkNative(t *testing.T, name string, h *dto.Histogram) {
	t.Helper()
	total, in, at := int64(h.GetZeroCount()), int64(0), 0
	for _, span := range h.GetPositiveSpan() {
		for range span.GetLength() {
			in += h.GetPositiveDelta()[at]
			at++
			if in < 0 {
				t.Errorf("%s: bucket %d holds %d", name, at, in)
			}
			total += in
		}
	}
	if h.GetSchema() != schema || at != len(h.GetPositiveDelta()) || total != int64(h.GetSampleCount()) || h.GetZeroThreshold() <= 0 || h.GetCreatedTimestamp() == nil {
		t.Errorf("%s: %d of %d deltas in spans sum up to %d: %v", name, at, len(h.GetPositiveDelta()), total, h)
	}
}
