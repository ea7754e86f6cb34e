package metrics

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The counterpart of each benchmark is the library this package replaces on the
// hot path and in the merge.

func hdrOf(values []int64) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, MaxValue, 3)
	for _, v := range values {
		_ = h.RecordValue(v) // all in range
	}
	return h
}

func BenchmarkRecord(b *testing.B) {
	values := draw(shapes["latency"], 1, 1<<16)
	b.Run("dist", func(b *testing.B) {
		d := &Dist{}
		for i := range b.N {
			d.Record(values[i&(1<<16-1)])
		}
	})
	b.Run("hdrhistogram", func(b *testing.B) {
		h := hdrhistogram.New(1, MaxValue, 3)
		for i := range b.N {
			_ = h.RecordValue(values[i&(1<<16-1)])
		}
	})
}

func benchmarkSizes(b *testing.B, run func(b *testing.B, values []int64)) {
	for name, n := range map[string]int{"1000": 1000, "100000": 100_000} {
		values := draw(shapes["latency"], 1, n)
		b.Run(name, func(b *testing.B) { b.ReportAllocs(); run(b, values) })
	}
}

func BenchmarkMerge(b *testing.B) {
	b.Run("dist", func(b *testing.B) {
		benchmarkSizes(b, func(b *testing.B, values []int64) {
			sum, part := distOf(draw(shapes["wide"], 2, 50_000)), distOf(values)
			for b.Loop() {
				sum.Merge(part)
			}
		})
	})
	b.Run("hdrhistogram", func(b *testing.B) {
		benchmarkSizes(b, func(b *testing.B, values []int64) {
			sum, part := hdrOf(nil), hdrOf(values)
			for b.Loop() {
				sum.Merge(part)
			}
		})
	})
}

func BenchmarkEncode(b *testing.B) {
	b.Run("dist", func(b *testing.B) {
		benchmarkSizes(b, func(b *testing.B, values []int64) {
			d, size := distOf(values), 0
			for b.Loop() {
				size = len(binaryOf(b, d))
			}
			b.ReportMetric(float64(size), "bytes")
		})
	})
	b.Run("hdrhistogram", func(b *testing.B) {
		benchmarkSizes(b, func(b *testing.B, values []int64) {
			h, size := hdrOf(values), 0
			for b.Loop() {
				text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
				if err != nil {
					b.Fatal(err)
				}
				size = len(text)
			}
			b.ReportMetric(float64(size), "bytes")
		})
	})
}

func BenchmarkDecodeMerge(b *testing.B) {
	b.Run("dist", func(b *testing.B) {
		benchmarkSizes(b, func(b *testing.B, values []int64) {
			raw, sum := binaryOf(b, distOf(values)), distOf(draw(shapes["wide"], 2, 50_000))
			for b.Loop() {
				var d Dist
				if err := d.UnmarshalBinary(raw); err != nil {
					b.Fatal(err)
				}
				sum.Merge(&d)
			}
		})
	})
	b.Run("hdrhistogram", func(b *testing.B) {
		benchmarkSizes(b, func(b *testing.B, values []int64) {
			raw, err := hdrOf(values).Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			if err != nil {
				b.Fatal(err)
			}
			sum := hdrOf(nil)
			for b.Loop() {
				h, err := hdrhistogram.Decode(raw)
				if err != nil {
					b.Fatal(err)
				}
				sum.Merge(h)
			}
		})
	})
}
