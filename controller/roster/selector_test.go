package roster

import (
	"strings"
	"testing"
)

func TestSelector(t *testing.T) {
	labels := map[string]string{"zone": "eu", "node": "n1", "app.kubernetes.io/name": "x"}
	tests := []struct {
		terms   string
		text    string
		matches bool
	}{
		{"", "", true},
		{"zone=eu", "zone=eu", true},
		{"zone=us", "zone=us", false},
		{"zone=us|eu", "zone=eu|us", true},
		{"zone=eu|eu", "zone=eu", true},
		{"zone=eu node=n1", "node=n1,zone=eu", true},
		{"zone=eu node=n2", "node=n2,zone=eu", false},
		{"zone=eu|us zone=eu|ap", "zone=eu", true},
		{"rack=7", "rack=7", false},
		{"app.kubernetes.io/name=x", "app.kubernetes.io/name=x", true},
	}
	for _, tc := range tests {
		s, err := ParseSelector(strings.Fields(tc.terms))
		if err != nil || s.String() != tc.text || s.Matches(labels) != tc.matches {
			t.Errorf("%q: %q, matches %v, %v; want %q, %v", tc.terms, s, s.Matches(labels), err, tc.text, tc.matches)
			continue
		}
		if tc.text != "" {
			again, err := ParseSelector(strings.Split(s.String(), ","))
			if err != nil || again.String() != s.String() {
				t.Errorf("%q read again: %q, %v", s, again, err)
			}
		}
	}
	if !(Selector{}).Matches(nil) {
		t.Error("the zero selector refuses")
	}
}

func TestParseSelectorErrors(t *testing.T) {
	tests := []struct {
		terms []string
		want  string
	}{
		{[]string{""}, `selector "": want LABEL=VALUE`},
		{[]string{"zone"}, `selector "zone": want LABEL=VALUE`},
		{[]string{"=eu"}, `label key ""`},
		{[]string{"zone="}, `value "" of label zone`},
		{[]string{"zone=eu|"}, `value "" of label zone`},
		{[]string{"zone==eu"}, `value "=eu" of label zone`},
		{[]string{"zone=eu,us"}, `value "eu,us" of label zone`},
		{[]string{"zone=eu us"}, `value "eu us" of label zone`},
		{[]string{"zo ne=eu"}, `label key "zo ne"`},
		{[]string{"zone!=eu"}, `label key "zone!"`},
		{[]string{"zone=eu", "zone=us"}, `selector "zone=us": no agent can match it and zone=eu too; write one term zone=A|B for either`},
	}
	for _, tc := range tests {
		if s, err := ParseSelector(tc.terms); err == nil || !strings.Contains(err.Error(), tc.want) || s.String() != "" {
			t.Errorf("%q: %q, %v; want an error with %q", tc.terms, s, err, tc.want)
		}
	}
}
