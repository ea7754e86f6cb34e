package wire

import (
	"fmt"
	"regexp"
)

var (
	labelKey   = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)
	labelValue = regexp.MustCompile(`^[A-Za-z0-9_./:@+-]{1,128}$`)
)

// CheckLabel refuses a label that a selector could not name: '=' and '|' mean
// something there, and a comma separates.
func CheckLabel(key, value string) error {
	if !labelKey.MatchString(key) {
		return fmt.Errorf("label key %q: want 1 to 128 letters, digits or . _ / -", key)
	}
	if !labelValue.MatchString(value) {
		return fmt.Errorf("value %q of label %s: want 1 to 128 letters, digits or . _ / : @ + -", value, key)
	}
	return nil
}
