package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/HdrHistogram/hdrhistogram-go"

	"ordeal/controller/result"
)

// histogramEncoding is the only one that documents hold.
const histogramEncoding = "hdr-v2-base64"

// decoded reads a stored distribution of microseconds.
func decoded(h *result.Histogram) (*hdrhistogram.Histogram, error) {
	if h.Encoding != histogramEncoding || h.Unit != "us" {
		return nil, fmt.Errorf("a histogram in %.20q of %.20q: want %s of us", h.Encoding, h.Unit, histogramEncoding)
	}
	out, err := hdrhistogram.Decode([]byte(h.Data))
	if err != nil {
		return nil, fmt.Errorf("a histogram cannot be read: %w", err)
	}
	return out, nil
}

// bar is a bucket of a distribution: its highest value in microseconds, and how
// many values fell into it.
type bar struct {
	us float64
	n  int64
}

// spread is a distribution as its filled buckets, ascending.
type spread struct {
	bars []bar
	upTo []int64 // values up to and with each bar
	n    int64
}

func spreadOf(h *hdrhistogram.Histogram) spread {
	var bars []bar
	for _, b := range h.Distribution() {
		if b.Count > 0 {
			bars = append(bars, bar{float64(b.To), b.Count})
		}
	}
	return newSpread(bars)
}

func newSpread(bars []bar) spread {
	slices.SortFunc(bars, func(a, b bar) int { return cmp.Compare(a.us, b.us) })
	s := spread{bars: bars, upTo: make([]int64, len(bars))}
	for i, b := range bars {
		s.n += b.n
		s.upTo[i] = s.n
	}
	return s
}

// joined is several distributions as one.
func joined(parts []spread) spread {
	sum := map[float64]int64{}
	for _, p := range parts {
		for _, b := range p.bars {
			sum[b.us] += b.n
		}
	}
	bars := make([]bar, 0, len(sum))
	for us, n := range sum {
		bars = append(bars, bar{us, n})
	}
	return newSpread(bars)
}

// at is the nearest-rank quantile in seconds; NaN when there is none.
func (s spread) at(q float64) float64 {
	if s.n <= 0 {
		return math.NaN()
	}
	rank := min(max(int64(math.Ceil(q*float64(s.n))), 1), s.n)
	i := sort.Search(len(s.upTo), func(i int) bool { return s.upTo[i] >= rank })
	return s.bars[min(i, len(s.bars)-1)].us / 1e6
}

// stored is the distribution of the last level under that name; empty without.
func (v *loading) stored(name string) spread {
	h, ok := v.Histograms[v.last.Stage+"/"+name]
	if !ok {
		return spread{}
	}
	out, err := decoded(&h)
	if err != nil {
		return spread{}
	}
	return spreadOf(out)
}

// perPeriod are the latencies of each period; one that cannot be read is empty.
func (v *loading) perPeriod() []spread {
	out := make([]spread, len(v.load.Periods))
	for i := range v.load.Periods {
		if h := v.load.Periods[i].Histogram; h != nil {
			if d, err := decoded(h); err == nil {
				out[i] = spreadOf(d)
			}
		}
	}
	return out
}

// response is the distribution of the measured part: as stored, else what its
// periods add up to.
func (v *loading) response(periods []spread) spread {
	if s := v.stored("latency"); s.n > 0 {
		return s
	}
	var measured []spread
	for i, p := range v.load.Periods {
		if p.Measured && i < len(periods) {
			measured = append(measured, periods[i])
		}
	}
	return joined(measured)
}
