package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// ErrNoLoad is what the exports of a load test return for any other document.
var ErrNoLoad = errors.New("the document holds no load test: give the one that ordeal load wrote")

// HDRLog writes an interval log (.hlog) as HdrHistogram's own tools read it: a line
// per period, in microseconds, with the maximum in milliseconds. Lines without a
// tag are the measured part alone, which is what a reader takes by default; warm-up
// and drain bear the tags warmup and drain. Distributions over the whole measured
// part follow under tags of their own: service, ttft, failed, timed_out, and one
// per step of a workload. The error is w's, ErrNoLoad, or names the histogram that
// cannot be read.
func HDRLog(w io.Writer, doc *result.Document) error {
	if doc.Load == nil {
		return ErrNoLoad
	}
	v, b := read(doc).loading(), &bytes.Buffer{}
	v.logHead(b)
	for i := range v.load.Periods {
		if err := v.logPeriod(b, &v.load.Periods[i]); err != nil {
			return fmt.Errorf("period %d, at %s: %w", i+1, lasting(v.load.Periods[i].FromS), err)
		}
	}
	if err := v.logWhole(b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (v *loading) logHead(b *bytes.Buffer) {
	start := v.Run.StartedAt.UTC()
	if start.Unix() < 0 {
		start = time.Unix(0, 0).UTC() // no time was recorded, and a reader takes no sign
	}
	epoch := float64(start.UnixMilli()) / 1e3
	b.WriteString("#[Latencies of a load test by ordeal in microseconds; to see milliseconds, give HistogramLogProcessor -outputValueUnitRatio 1000]\n")
	b.WriteString("#[Histogram log format version 1.3]\n")
	fmt.Fprintf(b, "#[StartTime: %.3f (seconds since epoch), %s]\n", epoch, start.Format(time.RFC3339))
	fmt.Fprintf(b, "#[BaseTime: %.3f (seconds since epoch)]\n", epoch)
	b.WriteString("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n")
}

// logPeriod writes the line of a period; one without a success has an empty
// histogram, so that no reader takes the gap for a missing line.
func (v *loading) logPeriod(b *bytes.Buffer, p *result.LoadPeriod) error {
	h := p.Histogram
	if h == nil {
		data, err := (&metrics.Dist{}).HDR()
		if err != nil {
			return err
		}
		h = &result.Histogram{Encoding: histogramEncoding, Unit: "us", Data: data}
	}
	tag := ""
	switch {
	case p.Measured:
	case p.FromS < v.load.WarmupS:
		tag = "warmup"
	default:
		tag = "drain"
	}
	return logLine(b, tag, p.FromS, v.load.PeriodS, h)
}

// logWhole writes what is known of the measured part as a whole.
func (v *loading) logWhole(b *bytes.Buffer) error {
	prefix := v.last.Stage + "/"
	for _, name := range slices.Sorted(maps.Keys(v.Histograms)) {
		kind, ok := strings.CutPrefix(name, prefix)
		if !ok || kind == "latency" {
			continue
		}
		h := v.Histograms[name]
		if err := logLine(b, logTag(kind), v.load.WarmupS, v.load.MeasuredS, &h); err != nil {
			return fmt.Errorf("histogram %s: %w", clean(name), err)
		}
	}
	for _, s := range v.load.Steps {
		if s.Histogram == nil {
			continue
		}
		if err := logLine(b, logTag("step/"+s.Scenario+"/"+s.Step), v.load.WarmupS, v.load.MeasuredS, s.Histogram); err != nil {
			return fmt.Errorf("step %s: %w", stepName(s), err)
		}
	}
	return nil
}

func logLine(b *bytes.Buffer, tag string, from, length float64, h *result.Histogram) error {
	d, err := decoded(h)
	if err != nil {
		return err
	}
	data, err := d.Encode(hdrhistogram.V2CompressedEncodingCookieBase) // not the text itself, which may hold anything behind its end
	if err != nil {
		return fmt.Errorf("a histogram cannot be written: %w", err)
	}
	if tag != "" {
		b.WriteString("Tag=" + tag + ",")
	}
	fmt.Fprintf(b, "%.3f,%.3f,%.3f,%s\n", max(finite(from), 0), max(finite(length), 0), float64(d.Max())/1e3, data)
	return nil
}

// finite is the number, 0 in place of none.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// maxTag bounds a tag, in bytes.
const maxTag = 120

// logTag keeps of a name what a tag may hold: a comma, a blank or a line break
// would end it.
func logTag(name string) string {
	tag := strings.Map(func(r rune) rune {
		if r < 0x80 && (wordRune(r) || strings.ContainsRune("_-./", r)) {
			return r
		}
		return '_'
	}, name)
	return strings.Trim(tag[:min(len(tag), maxTag)], "/")
}

// hgrmTicks is how many lines a halving of the rest takes, HdrHistogram's default.
const hgrmTicks = 5

// HGRM writes the latency distribution of the measured part as the percentile table
// (.hgrm) that HdrHistogram prints and its plotter reads: milliseconds, from the due
// moment in an open loop, with five ticks per halving. The error is w's or
// ErrNoLoad; a load without a success gives an empty table.
func HGRM(w io.Writer, doc *result.Document) error {
	if doc.Load == nil {
		return ErrNoLoad
	}
	v, b := read(doc).loading(), &bytes.Buffer{}
	h, err := v.responseHistogram()
	if err != nil {
		return err
	}
	b.WriteString("       Value     Percentile TotalCount 1/(1-Percentile)\n\n")
	for _, tick := range h.CumulativeDistributionWithTicks(hgrmTicks) {
		if h.TotalCount() == 0 {
			break
		}
		share := tick.Quantile / 100
		fmt.Fprintf(b, "%12.3f %14.12f %10d", float64(tick.ValueAt)/1e3, share, tick.Count)
		if share < 1 {
			fmt.Fprintf(b, " %14.2f", 1/(1-share))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", finite(h.Mean())/1e3, finite(h.StdDev())/1e3)
	fmt.Fprintf(b, "#[Max     = %12.3f, Total count    = %12d]\n", float64(h.Max())/1e3, h.TotalCount())
	fmt.Fprintf(b, "#[Buckets = %12d, SubBuckets     = %12d]\n", hdrBuckets, hdrSubBuckets)
	_, err = w.Write(b.Bytes())
	return err
}

// Geometry of our histograms as HdrHistogram names it, see metrics.Dist.
const (
	hdrBuckets    = 22
	hdrSubBuckets = 2048
)

// responseHistogram is the distribution of the measured part, see response.
func (v *loading) responseHistogram() (*hdrhistogram.Histogram, error) {
	if h, ok := v.Histograms[v.last.Stage+"/latency"]; ok {
		out, err := decoded(&h)
		if err != nil {
			return nil, fmt.Errorf("histogram %s/latency: %w", clean(v.last.Stage), err)
		}
		return out, nil
	}
	sum := hdrhistogram.New(1, metrics.MaxValue, 3)
	for i, p := range v.load.Periods {
		if !p.Measured || p.Histogram == nil {
			continue
		}
		h, err := decoded(p.Histogram)
		if err != nil {
			return nil, fmt.Errorf("period %d: %w", i+1, err)
		}
		if dropped := sum.Merge(h); dropped > 0 {
			return nil, fmt.Errorf("period %d: %d values above an hour", i+1, dropped)
		}
	}
	return sum, nil
}

// PeriodsCSV writes a row per period, RFC 4180: times in the unit that ends a
// column's name, counts without one, rates per second, an empty field where nothing
// is known. The error is w's or ErrNoLoad.
func PeriodsCSV(w io.Writer, doc *result.Document) error {
	if doc.Load == nil {
		return ErrNoLoad
	}
	v := read(doc).loading()
	kinds := v.outcomeKinds()
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(v.csvHead(kinds)); err != nil {
		return err
	}
	for i := range v.load.Periods {
		if err := out.Write(v.csvRow(&v.load.Periods[i], kinds)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (v *loading) csvHead(kinds []string) []string {
	asked := "asked_callers"
	if v.open() {
		asked = "asked_per_s"
	}
	head := []string{"from_s", "length_s", "measured", asked, "achieved_per_s", "scheduled", "sent", "dropped", "completed", "succeeded", "in_flight", "callers"}
	for _, k := range kinds {
		head = append(head, "outcome_"+clean(k))
	}
	return append(head, "p50_ms", "p95_ms", "p99_ms", "max_ms", "late_p99_ms")
}

func (v *loading) csvRow(p *result.LoadPeriod, kinds []string) []string {
	decimal := func(x float64) string { return strconv.FormatFloat(finite(x), 'f', -1, 64) }
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	achieved := 0.0
	if v.load.PeriodS > 0 {
		achieved = math.Round(float64(p.Succeeded)/v.load.PeriodS*1e3) / 1e3
	}
	row := []string{decimal(p.FromS), decimal(v.load.PeriodS), strconv.FormatBool(p.Measured), decimal(p.Asked), decimal(achieved),
		whole(p.Scheduled), whole(p.Sent), whole(p.Dropped), whole(p.Completed), whole(p.Succeeded), whole(p.InFlight), whole(p.Callers)}
	for _, k := range kinds {
		row = append(row, whole(p.Outcomes[k]))
	}
	for _, t := range []*float64{p.P50S, p.P95S, p.P99S, p.MaxS, p.LateP99S} {
		text := ""
		if t != nil {
			text = strconv.FormatFloat(math.Round(finite(*t)*1e6)/1e3, 'f', -1, 64)
		}
		row = append(row, text)
	}
	return row
}

// outcomeKinds are all that exist, so that tables of several runs have the same
// columns, then any of a later release.
func (v *loading) outcomeKinds() []string {
	var kinds []string
	for _, o := range metrics.Outcomes() {
		kinds = append(kinds, o.String())
	}
	more := map[string]bool{}
	for _, p := range v.load.Periods {
		for k := range p.Outcomes {
			if !slices.Contains(kinds, k) {
				more[k] = true
			}
		}
	}
	return append(kinds, slices.Sorted(maps.Keys(more))...)
}
