package llm

import (
	"net/http"
	"time"

	"ordeal/agent/quota"
	"ordeal/agent/web"
	"ordeal/metrics"
)

// limits records what a response says about a quota, once the outcome is known.
// An overloaded endpoint (529, or a 503 that says so) names its wait in the same
// headers as one that counts requests.
func (f *flight) limits(resp *http.Response) {
	if f.Outcome != metrics.RateLimited && !web.AnnouncesQuota(resp) {
		return
	}
	status := resp.StatusCode
	if f.Outcome == metrics.RateLimited && status != http.StatusOK {
		status = http.StatusTooManyRequests
	}
	found := quota.FromResponse(status, resp.Header, time.Now())
	f.RetryAfter, f.QuotaLimit, f.QuotaWindow = found.Wait, found.Limit, found.Window
	if f.Quota == "" {
		f.Quota = found.Seen
	}
	for _, n := range found.Notes {
		f.note(n)
	}
}
