package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ordeal/controller/result"
)

// element is what every tag of the page has to look like: known, with quoted
// attributes that need no network.
var element = regexp.MustCompile(`^</?(html|head|meta|title|style|body|main|header|div|span|p|b|dl|dt|dd|h1|h2|figure|figcaption|section|svg|path|rect|text|ul|li|table|thead|tbody|tr|th|td|footer)( (lang|charset|http-equiv|content|name|class|viewBox|width|height|role|aria-label|aria-hidden|d|x|y|scope|tabindex)="[^"<>]*")*/?>$`)

var tagStart = regexp.MustCompile(`<[^>]*>`)

func assertPage(t *testing.T, name, page string) {
	t.Helper()
	body := strings.Replace(page, "<!DOCTYPE html>", "", 1)
	if i, j := strings.Index(body, "<style>"), strings.Index(body, "</style>"); i < 0 || j < i {
		t.Fatalf("%s: no style", name)
	} else {
		body = body[:i] + body[j+len("</style>"):]
	}
	for _, tag := range tagStart.FindAllString(body, -1) {
		if !element.MatchString(tag) {
			t.Fatalf("%s: a tag that the page does not write: %q", name, tag)
		}
	}
	if rest := tagStart.ReplaceAllString(body, ""); strings.ContainsAny(rest, "<>") {
		t.Fatalf("%s: text acts as markup: %q", name, rest)
	}
	for _, word := range []string{"url(", "@import", "src=", "href=", "<script", "ZgotmplZ", "NaN", "Inf"} {
		if strings.Contains(body, word) && !strings.Contains(strings.Join(hostile, ""), word) {
			t.Fatalf("%s: the page holds %q", name, word)
		}
	}
	if n := strings.Count(page, "Content-Security-Policy"); n != 1 || !strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'`) {
		t.Fatalf("%s: %d content security policies", name, n)
	}
	for _, svg := range regexp.MustCompile(`<svg [^>]*>`).FindAllString(body, -1) {
		if !strings.Contains(svg, `aria-hidden="true"`) && !regexp.MustCompile(`role="img" aria-label="[^"]+"`).MatchString(svg) {
			t.Fatalf("%s: a drawing without a text: %s", name, svg)
		}
	}
}

func TestLoadHTML(t *testing.T) {
	for name, doc := range loadDocuments() {
		page := string(rendered(t, func(w io.Writer) error { return LoadHTML(w, doc) }))
		assertPage(t, name, page)
		if !strings.Contains(page, "<h1>Load test of ") || !strings.Contains(page, ">"+loadVerdictWord(doc.Verdict)+"</span>") {
			t.Errorf("%s: no title or verdict", name)
		}
	}
}

// What each document has charts for.
func TestFigures(t *testing.T) {
	want := map[string]string{
		"load-stall":    "Latency over time, Throughput over time, Percentile spectrum, Lateness of the generator",
		"load-overload": "Latency over time, Throughput over time, Errors over time, Percentile spectrum, Lateness of the generator",
		"load-closed":   "Latency over time, Throughput over time, Percentile spectrum, Throughput and latency by load",
		"load-knee":     "Latency over time, Throughput over time, Percentile spectrum, Throughput and latency by load, Lateness of the generator",
		"load-failed":   "Throughput over time, Errors over time",
		"load-unsent":   "",
	}
	for name, doc := range loadDocuments() {
		var titles []string
		for _, f := range read(doc).loading().canvas().figures() {
			titles = append(titles, f.Title)
		}
		if got, ok := want[name]; ok && strings.Join(titles, ", ") != got {
			t.Errorf("%s: charts %v, want %s", name, titles, got)
		}
	}
}

func TestLoadHTMLHoldsHostileText(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 3 {
		for name, doc := range loadDocuments() {
			doc = copied(t, doc)
			poison(doc, rng)
			doc.Load.Model = []string{"open", "closed", hostile[rng.IntN(len(hostile))]}[rng.IntN(3)]
			for i := range doc.Load.Periods {
				doc.Load.Periods[i].Outcomes = map[string]int64{hostile[rng.IntN(len(hostile))]: 3, "ok": 2}
			}
			assertPage(t, name, string(rendered(t, func(w io.Writer) error { return LoadHTML(w, doc) })))
			width := MinWidth + rng.IntN(MaxLoadWidth-MinWidth+1)
			assertSheet(t, string(rendered(t, func(w io.Writer) error { return LoadScorecard(w, doc, ScorecardOptions{Width: width, Verbose: true}) })), width)
			assertMarkdown(t, name, string(rendered(t, func(w io.Writer) error { return Markdown(w, doc) })))
		}
	}
}

// maxPage is what a page of 600 periods may take, in bytes.
const maxPage = 500_000

func TestLoadHTMLSize(t *testing.T) {
	s := simulated{model: "open", ramps: constant(200, 600), period: 1, workers: 6, inFlight: 64, service: lognormal(0.02, 0.9), late: onTime, seed: 13, fails: func(r *rand.Rand) string {
		return []string{"ok", "ok", "ok", "timeout", "connection", "server_error", "tool_error", "rate_limited", "protocol_error"}[r.IntN(9)]
	}}
	doc := s.document()
	if n := len(doc.Load.Periods); n < 600 {
		t.Fatalf("%d periods, want 600", n)
	}
	page := rendered(t, func(w io.Writer) error { return LoadHTML(w, doc) })
	t.Logf("%d periods: %d bytes", len(doc.Load.Periods), len(page))
	if len(page) > maxPage {
		t.Errorf("%d bytes, want at most %d", len(page), maxPage)
	}
}

// Contrast by WCAG 2.1: text 4.5, what carries meaning in a drawing 3.
func TestLoadHTMLContrast(t *testing.T) {
	light, dark, ok := strings.Cut(loadPage, "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("no dark theme")
	}
	for theme, css := range map[string]string{"light": light, "dark": dark} {
		colors := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z0-9]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
			colors[m[1]] = m[2]
		}
		want := map[string]float64{"text": 4.5, "muted": 4.5, "good": 4.5, "bad": 4.5, "caveat": 4.5, "s0": 3, "s1": 3, "s2": 3, "s3": 3, "s4": 3, "h7": 3, "h4": 3}
		for i := range 7 {
			want[fmt.Sprint("e", i)] = 3
		}
		for name, least := range want {
			for _, ground := range []string{"card", "page"} {
				if got := contrast(t, colors[name], colors[ground]); got < least {
					t.Errorf("%s: %s on %s has contrast %.2f, want %.1f", theme, name, ground, got, least)
				}
			}
		}
		for _, badge := range []string{"good", "bad", "caveat"} {
			if got := contrast(t, colors["on"], colors[badge]); got < 4.5 {
				t.Errorf("%s: the badge %s has contrast %.2f", theme, badge, got)
			}
		}
		for i := range heatShades - 1 { // the scale goes one way
			a, b := contrast(t, colors[fmt.Sprint("h", i)], colors["card"]), contrast(t, colors[fmt.Sprint("h", i+1)], colors["card"])
			if b <= a {
				t.Errorf("%s: shade %d has contrast %.2f, the next %.2f", theme, i, a, b)
			}
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	rgb, err := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 32)
	if err != nil || hex == "" {
		t.Fatalf("color %q: %v", hex, err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(rgb>>(16-8*i)&0xff) / 255
		if c <= 0.03928 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func TestAxes(t *testing.T) {
	for _, most := range []float64{0, 1, 7, 100, 101, 4999, 1e7, math.NaN(), math.Inf(1)} {
		x := linear(most, 0, 100)
		if ticks := x.ticks(); len(ticks) < 3 || len(ticks) > 7 || x.hi < most && !math.IsInf(most, 0) {
			t.Errorf("up to %g: %v to %g", most, ticks, x.hi)
		}
	}
	for _, r := range [][2]float64{{0, 0}, {1e-6, 1e-6}, {0.01, 0.011}, {0.001, 1}, {1e-6, 3600}, {math.Inf(1), 0}, {math.NaN(), math.NaN()}} {
		x := logSeconds(r[0], r[1], 100, 0)
		if ticks := x.secondTicks(); len(ticks) < 2 || len(ticks) > 12 {
			t.Errorf("%v: ticks %v of %g to %g", r, ticks, x.lo, x.hi)
		}
	}
	for _, end := range []float64{0.02, 0.5, 10, 61, 600, 90_000, 600_000} {
		for _, n := range []int{2, 12} {
			if ticks := (axis{lo: 0, hi: end}).timeTicks(n); len(ticks) < 2 || len(ticks) > n+1 {
				t.Errorf("%g s in %d: %v", end, n, ticks)
			}
		}
	}
}

// The formats of a load test refuse other documents.
func TestNoLoad(t *testing.T) {
	for name, render := range map[string]func(io.Writer, *result.Document) error{"html": LoadHTML, "csv": PeriodsCSV, "hgrm": HGRM, "hlog": HDRLog} {
		if err := render(&bytes.Buffer{}, passing()); err != ErrNoLoad {
			t.Errorf("%s: error %v, want ErrNoLoad", name, err)
		}
	}
}
