package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// PPB is a probability in parts per 10^9, 0 to One. Rates are whole numbers
// because the same float may end in other last bits on another processor, and
// one fault more or less would make two runs differ.
type PPB uint32

// One is certainty.
const One PPB = 1_000_000_000

const ppbDigits = 9

// ParsePPB reads a rate written as a plain decimal from 0 to 1 with at most
// nine decimals: "0.2" is 200,000,000. Signs, exponents and percent signs are
// refused.
func ParsePPB(text string) (PPB, error) {
	whole, frac, dotted := strings.Cut(text, ".")
	if !digits(whole) || dotted && !digits(frac) {
		return 0, fmt.Errorf("rate %q is not a plain decimal; write 0.2 for 20 %%", text)
	}
	if len(frac) > ppbDigits {
		return 0, fmt.Errorf("rate %q has %d decimals; at most %d are kept exactly", text, len(frac), ppbDigits)
	}
	n, err := strconv.ParseUint(whole+frac+strings.Repeat("0", ppbDigits-len(frac)), 10, 64)
	if err != nil || n > uint64(One) {
		return 0, fmt.Errorf("rate %q is above 1; a rate is a share of operations from 0 to 1", text)
	}
	return PPB(n), nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// PPBFromFloat converts the value of a flag or of a YAML number through its
// shortest decimal form, so 0.2 is exactly "0.2". It refuses what ParsePPB
// refuses, 1.0/3 among it: a rate that has no exact form is not rounded in
// silence.
func PPBFromFloat(f float64) (PPB, error) {
	return ParsePPB(strconv.FormatFloat(f, 'f', -1, 64))
}

// Float returns the rate as a share, for display and for statistics.
func (p PPB) Float() float64 { return float64(p) / float64(One) }

// String returns the shortest decimal that ParsePPB reads back to p.
func (p PPB) String() string {
	text := fmt.Sprintf("%d.%09d", p/One, p%One)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
