package secret

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// minBase64 is the shortest piece of base64 worth removing.
const minBase64 = 6

// forms lists what a secret looks like after the encodings it meets on the way
// into a log: itself, URL escapes, JSON escapes, base64.
func forms(v string) []string {
	all := []string{v, url.QueryEscape(v), url.PathEscape(v), lowerHex(url.QueryEscape(v)), lowerHex(url.PathEscape(v))}
	if quoted, err := json.Marshal(v); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	if quoted := strconv.Quote(v); len(quoted) > 2 {
		all = append(all, quoted[1:len(quoted)-1])
	}
	all = append(all, base64Forms(v)...)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return len(s) < minLen })
}

// base64Forms covers the three alignments a secret can have inside an encoded
// text: of each the characters that depend on the secret alone.
func base64Forms(v string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			coded := enc.EncodeToString([]byte("\x00\x00"[:shift] + v))
			first := (shift*8 + 5) / 6
			last := (shift + len(v)) * 8 / 6
			if last-first >= minBase64 {
				all = append(all, coded[first:last])
			}
		}
	}
	return all
}

var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

func lowerHex(s string) string { return percent.ReplaceAllStringFunc(s, strings.ToLower) }

// telling names of query parameters, and of variables in a text, announce a
// credential.
const tellingNames = `(?:api[-_]?key|access[-_]?key|key|token|secret|passwd|password|passphrase|credentials?|authorization|auth|signature|sig)`

var (
	tellingName = regexp.MustCompile(`(?i)(?:^|[-_.])` + tellingNames + `$|(?i)^(?:\w*(?:apikey|token|secret|password))$`)

	// patterns match credentials nobody configured here, such as a key a server
	// prints on its way out. The first group stays.
	patterns = []*regexp.Regexp{
		regexp.MustCompile(`(?i)(\b[a-z0-9_-]*(?:api[-_]?key|access[-_]?key|token|secret|passw(?:or)?d)["']?\s*[=:]\s*["']?)[^\s"'&,;\[]{4,}`),
		regexp.MustCompile(`(\b[a-z][a-z0-9+.-]*://)[^\s/@:"']+:[^\s/@"']+@`),
		regexp.MustCompile(`(\b)(?:sk|pk|rk)-[A-Za-z0-9_-]{6,}`),
		regexp.MustCompile(`(\b)(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|xox[abprs]-[\w-]{8,}|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)`),
	}
	scheme = regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{8,}`)
	// A challenge has parameters where a credential would be.
	challenge = regexp.MustCompile(`(?i)\s(?:realm|scope|error|error_description|error_uri|resource|resource_metadata|authorization_uri|charset|title)=$`)
	hints     = []string{"key", "token", "secret", "passw", "bearer", "basic", "://", "sk-", "pk-", "rk-", "gh", "xox", "akia", "aiza", "eyj"}
)

// Telling reports whether the name of a variable or parameter announces a
// credential, as API_KEY or access_token do.
func Telling(name string) bool { return tellingName.MatchString(name) }

func maskPatterns(text string) string {
	lower := strings.ToLower(text)
	if !slices.ContainsFunc(hints, func(h string) bool { return strings.Contains(lower, h) }) {
		return text
	}
	text = scheme.ReplaceAllStringFunc(text, func(found string) string {
		if challenge.MatchString(found) {
			return found
		}
		return scheme.ReplaceAllString(found, "${1}"+Mask)
	})
	for _, p := range patterns {
		text = p.ReplaceAllString(text, "${1}"+Mask)
	}
	return text
}

const ellipsis = "…"

// oneLine collapses white space, escapes what could move a cursor or turn the
// reading direction, and cuts to max characters.
func oneLine(text string, max int) string {
	var out strings.Builder
	n, space := 0, false
	for _, c := range text {
		if n >= max {
			break
		}
		if unicode.IsSpace(c) {
			space = out.Len() > 0
			continue
		}
		piece := visible(c)
		if space {
			piece, space = " "+piece, false
		}
		n += len([]rune(piece))
		out.WriteString(piece)
	}
	if n < max {
		return out.String()
	}
	if runes := []rune(out.String()); len(runes) > max || len(out.String()) < len(strings.TrimSpace(text)) {
		return string(runes[:max-1]) + ellipsis
	}
	return out.String()
}

func visible(c rune) string {
	if c == unicode.ReplacementChar || unicode.IsPrint(c) {
		return string(c)
	}
	return strings.Trim(strconv.QuoteRune(c), "'")
}
