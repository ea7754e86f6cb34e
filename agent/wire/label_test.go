package wire

import (
	"strings"
	"testing"
)

func TestCheckLabel(t *testing.T) {
	long := strings.Repeat("x", 129)
	for label, ok := range map[[2]string]bool{
		{"zone", "eu-1"}: true, {"app.kubernetes.io/name", "a_b"}: true, {"image", "repo/x:1.2@sha+1"}: true,
		{"", "x"}: false, {"zone", ""}: false, {"a=b", "x"}: false, {"zone", "eu|us"}: false, {"zone", "a,b"}: false, {"zone", "a b"}: false,
		{"zone", "a\n"}: false, {"zone", "\x1b[m"}: false, {long, "x"}: false, {"zone", long}: false,
	} {
		if err := CheckLabel(label[0], label[1]); (err == nil) != ok {
			t.Errorf("CheckLabel(%q, %q) = %v, want ok %v", label[0], label[1], err, ok)
		}
	}
}
