package prom

import (
	"regexp"
	"slices"
	"strings"
)

// What stands for a value that is not fit to be shown.
const (
	refused  = "invalid"  // not a name at all
	redacted = "redacted" // a name, but it may be a secret
	other    = "other"    // not in the list
)

var (
	names    = regexp.MustCompile(`^[A-Za-z0-9._,-]{0,128}$`)
	versions = regexp.MustCompile(`^[A-Za-z0-9.()+_-]{1,64}$`)
	runs     = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{10}$`)
	// runOf finds a run of 20 letters and digits. Names of hosts, pods, images
	// and instances have none with a digit in it; the keys of providers and
	// signed tokens do.
	runOf = regexp.MustCompile(`[A-Za-z0-9]{20,}`)
)

// name lets the name of an agent, a zone or pools pass: letters, digits and
// . _ - with commas between several. An address has other characters.
func name(s string) string { return matching(names, s) }

// version lets the version of a build pass.
func version(s string) string { return matching(versions, s) }

// runID lets the id of a run pass, which is a time and a random number.
func runID(s string) string {
	if !runs.MatchString(s) {
		return refused
	}
	return s
}

// oneOf lets the words of a list pass.
func oneOf(list []string, s string) string {
	if !slices.Contains(list, s) {
		return other
	}
	return s
}

func matching(form *regexp.Regexp, s string) string {
	switch {
	case !form.MatchString(s):
		return refused
	case mayBeSecret(s):
		return redacted
	}
	return s
}

// mayBeSecret guards against a token where a name should be. Secrets are kept
// out by value before they come here; this is the second lock.
func mayBeSecret(s string) bool {
	return slices.ContainsFunc(runOf.FindAllString(s, -1), func(run string) bool {
		return strings.ContainsAny(run, "0123456789")
	})
}
