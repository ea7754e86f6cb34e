package schema

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAudit(t *testing.T) {
	tests := []struct {
		name, description, schema string
		want                      []Issue
	}{
		{"OK", "finds", mockTool, nil},
		{"NoDescription", " ", mockTool, []Issue{{"t", "missing_description", "", "the tool has no description"}}},
		{"NoSchema", "d", ``, []Issue{{"t", "no_schema", "", "the tool has no input schema"}}},
		{"NullSchema", "d", `null`, []Issue{{"t", "no_schema", "", "the tool has no input schema"}}},
		{"NotJSON", "d", `{"a"`, []Issue{{"t", "unreadable_schema", "", "the input schema cannot be read: not a JSON Schema: unexpected EOF"}}},
		{"True", "d", `true`, []Issue{{"t", "top_type_not_object", "", "the input schema is the boolean true: legal, but it declares nothing"}}},
		{"TopArray", "d", `{"type":"array"}`, []Issue{{"t", "top_type_not_object", "/type", `the top type is "array"; arguments are always an object`}}},
		{"TopUnion", "d", `{"type":["object","null"]}`, []Issue{{"t", "top_type_not_object", "/type", `the top type is ["object","null"]; arguments are always an object`}}},
		{"NoTopType", "d", `{}`, nil},
		{"RequiredUndeclared", "d", `{"properties":{"a":{"type":"string"}},"required":["a","b"]}`,
			[]Issue{{"t", "required_not_in_properties", "/required/1", "required field b is not among the properties"}}},
		{"RequiredInBranch", "d", `{"allOf":[{"$ref":"#/$defs/b"}],"required":["b"],"$defs":{"b":{"properties":{"b":{}}}}}`, nil},
		{"RequiredInOtherDocument", "d", `{"$ref":"other.json","required":["b"]}`, nil},
		{"RequiredByPattern", "d", `{"patternProperties":{"^b":{}},"required":["b"]}`, nil},
		{"BooleanProperty", "d", `{"properties":{"a":true}}`,
			[]Issue{{"t", "property_is_boolean_schema", "/properties/a", "property a is the boolean schema true: legal, but it tells a caller nothing"}}},
		{"PropertyNotObject", "d", `{"properties":{"a":"string"}}`,
			[]Issue{{"t", "property_not_object", "/properties/a", `property a is "string", not a schema`}}},
		{"Untyped", "d", `{"properties":{"a~b":{"description":"x"},"c":{"const":1},"d":{"$ref":"#"},"e":{"allOf":[{}]},"f":{"enum":[1]},"g":{"oneOf":[{}]},"h":{"anyOf":[{}]}}}`,
			[]Issue{{"t", "property_without_type", "/properties/a~0b", "property a~b has none of type, enum, anyOf, oneOf, allOf, $ref, const"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Audit("t", tt.description, json.RawMessage(tt.schema))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
