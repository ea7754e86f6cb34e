package guard

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ordeal/metrics"
)

// Bounds of what a condition may say.
const (
	MinWindow  = time.Second
	MaxWindow  = time.Hour
	MaxLatency = metrics.MaxValue * time.Microsecond // 1 h; latencies are not recorded beyond

	one      = 1_000_000_000 // certainty, in parts per 10^9
	decimals = 9             // of a rate, kept exactly
	examples = "error_rate>0.5/10s or p95>500ms/30s"
)

// Condition is a reason to stop: a metric past a limit over a window. Only
// ParseCondition makes one, so it is always a valid one; the zero value never
// trips. Conditions can be compared with ==.
type Condition struct {
	metric  string
	orEqual bool
	limit   int64 // parts per 10^9 of a rate, µs of a latency
	window  time.Duration
}

// ParseCondition reads METRIC OP LIMIT / WINDOW, with blanks wherever they help;
// the package comment has the grammar. Rates have at most nine decimals,
// latencies are whole microseconds. The error is one line with an example.
func ParseCondition(text string) (Condition, error) {
	c, err := parseCondition(text)
	if err != nil {
		return Condition{}, fmt.Errorf("stop condition %.80q: %w; write for example %s", text, err, examples)
	}
	return c, nil
}

func parseCondition(text string) (c Condition, err error) {
	metric, rest, found := strings.Cut(text, ">")
	if !found {
		return c, errors.New("has no > or >=")
	}
	rest, c.orEqual = strings.CutPrefix(rest, "=")
	limit, window, found := strings.Cut(rest, "/")
	if !found {
		return c, errors.New("has no /WINDOW")
	}
	c.metric = trim(metric)
	g, known := gaugeNamed(c.metric)
	if !known {
		return c, fmt.Errorf("unknown metric %.40q, want one of %s", c.metric, strings.Join(gaugeNames(), ", "))
	}
	if c.limit, err = parseLimit(g, trim(limit)); err != nil {
		return c, err
	}
	if c.window, err = parseWindow(trim(window)); err != nil {
		return c, err
	}
	return c, c.decides(g)
}

func trim(s string) string { return strings.Trim(s, " \t") }

func parseLimit(g gauge, text string) (int64, error) {
	if g.rate() {
		return parseRate(text)
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("limit %.40q is no duration", text)
	case d%time.Microsecond != 0:
		return 0, fmt.Errorf("limit %.40q is not in whole microseconds", text)
	case d < time.Microsecond || d > MaxLatency:
		return 0, fmt.Errorf("limit %.40q is not between 1us and 1h", text)
	}
	return d.Microseconds(), nil
}

// parseRate reads a plain decimal, or a percentage, into parts per 10^9.
func parseRate(text string) (int64, error) {
	number, percent := strings.CutSuffix(text, "%")
	places := decimals
	if percent {
		number, places = strings.TrimRight(number, " \t"), places-2
	}
	whole, frac, dotted := strings.Cut(number, ".")
	if !digits(whole) || dotted && !digits(frac) {
		return 0, fmt.Errorf("limit %.40q is neither a share like 0.5 nor a percentage like 50%%", text)
	}
	if len(frac) > places {
		return 0, fmt.Errorf("limit %.40q has %d decimals, at most %d are kept exactly", text, len(frac), places)
	}
	n, err := strconv.ParseInt(whole+frac+strings.Repeat("0", places-len(frac)), 10, 64)
	if err != nil || n > one {
		return 0, fmt.Errorf("limit %.40q is above 1, which is 100%%", text)
	}
	return n, nil
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func parseWindow(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("window %.40q is no duration", text)
	}
	if d < MinWindow || d > MaxWindow {
		return 0, fmt.Errorf("window %.40q is not between 1s and 1h", text)
	}
	return d, nil
}

// decides refuses a condition whose answer is known beforehand: one that can
// never trip protects nobody.
func (c Condition) decides(g gauge) error {
	top := int64(one)
	if !g.rate() {
		top = metrics.MaxValue
	}
	switch {
	case !c.orEqual && c.limit == top:
		return fmt.Errorf("nothing is above %s, so it would never stop; use >=", c.shown(c.limit))
	case c.orEqual && c.limit == 0:
		return errors.New("everything is at least 0, so it would always stop; use >")
	}
	return nil
}

// exceeded compares a value in the unit of the limit.
func (c Condition) exceeded(value int64) bool {
	return value > c.limit || c.orEqual && value == c.limit
}

// Window is the time the condition looks back.
func (c Condition) Window() time.Duration { return c.window }

// String is the canonical text, which ParseCondition reads back to the same
// condition; empty for the zero value.
func (c Condition) String() string {
	if c.metric == "" {
		return ""
	}
	return c.metric + c.op() + c.shown(c.limit) + "/" + duration(c.window)
}

func (c Condition) op() string {
	if c.orEqual {
		return ">="
	}
	return ">"
}

// shown writes a limit with all its digits.
func (c Condition) shown(value int64) string { return c.text(value, decimals) }

// text writes a rate with at most the given number of decimals, or a latency.
func (c Condition) text(value int64, places int) string {
	if g, _ := gaugeNamed(c.metric); !g.rate() {
		return duration(time.Duration(value) * time.Microsecond)
	}
	s := fmt.Sprintf("%d.%09d", value/one, value%one)
	s = s[:len(s)-decimals+places]
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// duration leaves out the zeros that time.Duration writes: 1m, not 1m0s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText writes the canonical text.
func (c Condition) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what ParseCondition reads; empty text is the zero value.
func (c *Condition) UnmarshalText(text []byte) (err error) {
	*c = Condition{}
	if len(text) > 0 {
		*c, err = ParseCondition(string(text))
	}
	return err
}
