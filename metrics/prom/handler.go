package prom

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// handler has the three endpoints; anything else is not found.
func handler(opt Options, sources []Source) http.Handler {
	process := newProcess(opt.Version)
	all := prometheus.Gatherers{process}
	for _, s := range sources {
		if g := s.gatherer(); g != nil {
			all = append(all, g)
		}
	}
	mux := http.NewServeMux()
	// What is wrong with one series must not hide the others; the registry
	// counts it in promhttp_metric_handler_errors_total.
	mux.Handle("GET /metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{Registry: process,
		ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true, MaxRequestsInFlight: inFlight}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { ready(w, opt.Ready) })
	return mux
}

func ready(w http.ResponseWriter, check func() error) {
	if check != nil {
		if err := check(); err != nil {
			answer(w, http.StatusServiceUnavailable, "not ready: "+oneLine(err.Error()))
			return
		}
	}
	answer(w, http.StatusOK, "ready")
}

func answer(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, line) // whoever asked has gone
}

// userinfo of a URL, which may hold a password.
var userinfo = regexp.MustCompile(`://\S*@`)

// lineRunes bounds a reason: it is for a person who looks at a probe.
const lineRunes = 200

// oneLine makes a text fit for one line of an answer: no control characters, no
// userinfo, at most lineRunes characters.
func oneLine(text string) string {
	text = userinfo.ReplaceAllString(text, "://"+redacted+"@")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if r := []rune(text); len(r) > lineRunes {
		return string(r[:lineRunes-1]) + "…"
	}
	return text
}
