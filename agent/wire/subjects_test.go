package wire

import (
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"default": true, "eu-1_A": true, strings.Repeat("x", 128): true,
		"": false, "a b": false, "a.b": false, "*": false, ">": false, "a/b": false, "ä": false, "a\n": false, strings.Repeat("x", 129): false,
	} {
		if err := CheckName("pool", name); (err == nil) != ok {
			t.Errorf("CheckName(%q) = %v, want ok %v", name, err, ok)
		}
	}
}
