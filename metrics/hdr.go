package metrics

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// HDR is the distribution as an HdrHistogram log line holds it: V2, compressed,
// base64. Any HdrHistogram tool reads it. It has this package's geometry (1 to
// MaxValue, three digits), so percentiles agree once the Dist keeps buckets;
// before that they are rounded up to the end of their bucket, by less than
// 0.1 %.
func (d *Dist) HDR() (string, error) {
	h := hdrhistogram.New(1, MaxValue, 3)
	var failed error
	d.Each(func(v, n int64) {
		if err := h.RecordValues(v, n); err != nil {
			failed = err
		}
	})
	if failed != nil {
		return "", fmt.Errorf("metrics: histogram: %w", failed)
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("metrics: histogram: %w", err)
	}
	return string(text), nil
}
