package metrics

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// HDR is the distribution as an HdrHistogram: base64 of the V2 compressed form,
// 1 to MaxValue at three significant digits, for tools that read such logs.
// Values above MaxValue are written as MaxValue.
func (d *Dist) HDR() (string, error) {
	h := hdrhistogram.New(1, MaxValue, 3)
	var err error
	d.Each(func(value, count int64) {
		if err == nil {
			err = h.RecordValues(min(value, MaxValue), count)
		}
	})
	if err != nil {
		return "", fmt.Errorf("export histogram: %w", err)
	}
	raw, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("export histogram: %w", err)
	}
	return string(raw), nil
}
