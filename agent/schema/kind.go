package schema

import "slices"

// Kind names a way to corrupt arguments. Reports and thresholds use the text.
type Kind string

// The first eight are the classic kinds; the rest follow further keywords.
const (
	nullRequired       Kind = "null_required"        // null in a declared field
	wrongType          Kind = "wrong_type"           // a value of a type that is not declared
	emptyString        Kind = "empty_string"         // ""
	veryLongString     Kind = "very_long_string"     // 50,000 × "A", more where maxLength allows that
	outOfRange         Kind = "out_of_range"         // just outside a numeric bound
	missingRequired    Kind = "missing_required"     // one required member left out
	missingAllRequired Kind = "missing_all_required" // all of them, where there are two or more
	extraParam         Kind = "extra_param"          // an unknown member

	tooShort          Kind = "too_short"          // one character below minLength
	tooLong           Kind = "too_long"           // one character above maxLength
	notMultipleOf     Kind = "not_multiple_of"    // between two multiples
	fractionalInteger Kind = "fractional_integer" // 1.5
	enumOutsider      Kind = "enum_outsider"      // of the right type, not in the list
	constOutsider     Kind = "const_outsider"
	patternOutsider   Kind = "pattern_outsider"
	formatOutsider    Kind = "format_outsider"
	tooFewItems       Kind = "too_few_items"
	tooManyItems      Kind = "too_many_items"
	duplicateItems    Kind = "duplicate_items"
	wrongItem         Kind = "wrong_item"         // a bad element in a good array
	tooFewProperties  Kind = "too_few_properties" // below minProperties
	tooManyProperties Kind = "too_many_properties"
	dependentRequired Kind = "dependent_required" // a member without the ones it depends on
	badPropertyName   Kind = "bad_property_name"  // a name that propertyNames refuses
	badExtraValue     Kind = "bad_extra_value"    // a bad value under a name that a pattern or additionalProperties covers
	noBranch          Kind = "no_branch"          // no alternative of anyOf or oneOf fits
	twoBranches       Kind = "two_branches"       // two alternatives of oneOf fit
	notAllowed        Kind = "not_allowed"        // what not excludes
	brokenCondition   Kind = "broken_condition"   // if holds, then does not
	wrongContainer    Kind = "wrong_container"    // arguments that are not an object
)

var kinds = []Kind{
	nullRequired, wrongType, emptyString, veryLongString, outOfRange, missingRequired, missingAllRequired, extraParam,
	tooShort, tooLong, notMultipleOf, fractionalInteger, enumOutsider, constOutsider, patternOutsider, formatOutsider,
	tooFewItems, tooManyItems, duplicateItems, wrongItem, tooFewProperties, tooManyProperties, dependentRequired,
	badPropertyName, badExtraValue, noBranch, twoBranches, notAllowed, brokenCondition, wrongContainer,
}

// Kinds lists all kinds in their fixed order, the eight classic ones first.
func Kinds() []Kind { return slices.Clone(kinds) }

func rank(k Kind) int { return slices.Index(kinds, k) }

// permissive kinds are sent even where the schema allows the payload.
func (k Kind) permissive() bool {
	switch k {
	case nullRequired, wrongType, emptyString, veryLongString, extraParam:
		return true
	}
	return false
}
