package report

import (
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// everyFormat renders a load test, with what a caller may choose.
var everyFormat = map[string]func(io.Writer, *result.Document) error{
	"scorecard": func(w io.Writer, d *result.Document) error { return Scorecard(w, d, ScorecardOptions{Verbose: true}) },
	"markdown":  Markdown, "json": JSON, "html": LoadHTML, "csv": PeriodsCSV, "hgrm": HGRM, "hlog": HDRLog,
	"agents": func(w io.Writer, d *result.Document) error { return AgentsMD(w, d, nil, now) },
	"verdict": func(w io.Writer, d *result.Document) error {
		_, err := io.WriteString(w, Verdict(d))
		return err
	},
}

// scatter fills a value with anything its type allows: nothing, absurd numbers,
// hostile texts, broken histograms.
func scatter(v reflect.Value, rng *rand.Rand, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				scatter(f, rng, depth+1)
			}
		}
		scatterHistogram(v, rng)
	case reflect.Pointer:
		if depth < 9 && rng.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			scatter(v.Elem(), rng, depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 || depth > 9 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), rng.IntN(5), 5))
		for i := range v.Len() {
			scatter(v.Index(i), rng, depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rng.IntN(4) {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			scatter(k, rng, depth+1)
			scatter(e, rng, depth+1)
			v.SetMapIndex(k, e)
		}
	case reflect.Interface:
		if n := rng.IntN(4); n > 0 {
			v.Set(reflect.ValueOf([]any{nil, number(rng), int64(rng.IntN(9)), "text"}[n]))
		}
	case reflect.String:
		v.SetString([]string{"open", "closed", "load", "ok", hostile[rng.IntN(len(hostile))]}[rng.IntN(5)])
	case reflect.Float64:
		v.SetFloat(number(rng))
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, 60, 4000, -3, math.MaxInt64, math.MinInt64}[rng.IntN(7)])
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	}
}

func scatterHistogram(v reflect.Value, rng *rand.Rand) {
	h, ok := v.Addr().Interface().(*result.Histogram)
	if !ok || rng.IntN(4) == 0 {
		return
	}
	d := &metrics.Dist{}
	for range rng.IntN(200) {
		d.Record(rng.Int64N(metrics.MaxValue))
	}
	*h = hdr(d)
	if rng.IntN(5) == 0 {
		h.Data = h.Data[:rng.IntN(len(h.Data))]
	}
}

func number(rng *rand.Rand) float64 {
	return []float64{0, 0.5, 1, 30, 1e-9, 1e300, -4, math.NaN(), math.Inf(1), math.Inf(-1), rng.Float64() * 100}[rng.IntN(11)]
}

func renderEvery(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 17))
	doc := &result.Document{}
	scatter(reflect.ValueOf(doc).Elem(), rng, 0)
	doc.Load = &result.Load{}
	scatter(reflect.ValueOf(doc.Load).Elem(), rng, 0)
	for format, render := range everyFormat {
		if err := render(io.Discard, doc); err != nil && format != "json" && format != "hgrm" && format != "hlog" && format != "agents" { // these say what they cannot write
			t.Errorf("seed %d: %s: %v", seed, format, err)
		}
	}
}

// Whatever a document holds, no format panics on it.
func TestScatteredLoads(t *testing.T) {
	for seed := range uint64(80) {
		renderEvery(t, seed)
	}
}

func FuzzLoadDocument(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(renderEvery)
}

// FuzzStoredHistogram: a histogram from a file is read, or refused with a word.
func FuzzStoredHistogram(f *testing.F) {
	d := &metrics.Dist{}
	d.Record(1000)
	f.Add(hdr(d).Data)
	f.Add("HISTFAAA")
	f.Fuzz(func(t *testing.T, data string) {
		h, err := decoded(&result.Histogram{Encoding: histogramEncoding, Unit: "us", Data: data})
		if err == nil {
			s := spreadOf(h)
			for _, q := range []float64{0, 0.5, 0.99, 1} {
				s.at(q)
			}
		}
	})
}
