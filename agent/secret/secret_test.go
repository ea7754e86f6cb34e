package secret

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestResolve(t *testing.T) {
	t.Setenv("ORDEAL_T1", "s3cret+x")
	t.Setenv("ORDEAL_EMPTY", "")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ in, want string }{
		{"plain", "plain"},
		{"", ""},
		{"${env:ORDEAL_T1}", "s3cret+x"},
		{"$ORDEAL_T1", "s3cret+x"},
		{"${ORDEAL_T1}", "s3cret+x"},
		{"Bearer ${env:ORDEAL_T1}!", "Bearer s3cret+x!"},
		{"a$ORDEAL_T1/$ORDEAL_T1", "as3cret+x/s3cret+x"},
		{"<${env:ORDEAL_EMPTY}>", "<>"},
		{"${file:" + file + "}", "from file"},
		{"$$HOME costs $5, $", "$HOME costs $5, $"},
	}
	for _, tc := range tests {
		got, err := Resolve(tc.in)
		if err != nil || got != tc.want {
			t.Errorf("Resolve(%q) = %q, %v; want %q", tc.in, got, err, tc.want)
		}
	}
	for _, in := range []string{"${env:ORDEAL_UNSET}", "$ORDEAL_UNSET", "${", "${}", "${env:}", "${env:a b}", "${file:/no/such}", "${http://x}"} {
		if got, err := Resolve(in); err == nil || got != "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("Resolve(%q) = %q, %v; want a one-line error", in, got, err)
		}
	}
}

func TestHasReference(t *testing.T) {
	for in, want := range map[string]bool{"": false, "a": false, "$5": false, "$": false, "$A": true, "x${env:A}": true, "$$": true, "5$ and $B": true} {
		if got := HasReference(in); got != want {
			t.Errorf("HasReference(%q) = %v", in, got)
		}
	}
}

func TestRedactorForms(t *testing.T) {
	const key = `S3CRET+x/"y<&>`
	var r Redactor
	r.Add(key)
	for name, text := range map[string]string{
		"raw":           key,
		"query escape":  url.QueryEscape(key),
		"path escape":   url.PathEscape(key),
		"lower hex":     "S3CRET%2bx%2f%22y%3c%26%3e",
		"base64":        base64.StdEncoding.EncodeToString([]byte(key)),
		"base64 url":    base64.URLEncoding.EncodeToString([]byte(key)),
		"json":          `S3CRET+x/\"y\u003c\u0026\u003e`,
		"go quote":      fmt.Sprintf("%q", key),
		"basic auth":    base64.StdEncoding.EncodeToString([]byte("u:" + key)),
		"basic auth 2":  base64.StdEncoding.EncodeToString([]byte("me:" + key + "tail")),
		"basic auth 3":  base64.StdEncoding.EncodeToString([]byte("you:" + key)),
		"within a text": "GET /?k=" + url.QueryEscape(key) + " 500",
	} {
		got := r.Text("before " + text + " after")
		if strings.Contains(got, "S3CRET") || !strings.Contains(got, Mask) {
			t.Errorf("%s: %q", name, got)
		}
		if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s: took too much: %q", name, got)
		}
	}
	if strings.Contains(r.Text(base64.StdEncoding.EncodeToString([]byte("u:"+key))), base64.StdEncoding.EncodeToString([]byte(key))[4:12]) {
		t.Error("shifted base64 left over")
	}
}

func TestRedactorSources(t *testing.T) {
	t.Setenv("ORDEAL_T2", "true") // a silly secret is still a secret
	var r Redactor
	r.AddURL("https://user1:p4ss%21word@h.example/mcp?api_key=S3CRET%2Bx&mode=alpha&X-Token=t0k3n")
	if v, err := r.Resolve("Bearer t0psecretvalue"); err != nil || v != "Bearer t0psecretvalue" {
		t.Fatal(v, err)
	}
	r.AddLiteral("info")
	for text, want := range map[string]string{
		"p4ss!word":               Mask,
		"user1":                   Mask,
		"S3CRET%2Bx":              Mask,
		"S3CRET+x":                Mask,
		"t0k3n":                   Mask,
		"t0psecretvalue":          Mask,
		"mode alpha stays":        "mode alpha stays",
		"info: true and harmless": "info: true and harmless",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
	if _, err := r.Resolve("${env:ORDEAL_T2}"); err != nil {
		t.Fatal(err)
	}
	if got := r.Text("true"); got != Mask {
		t.Errorf("referenced value stays: %q", got)
	}
}

func TestRedactorPatterns(t *testing.T) {
	var r Redactor
	for text, hidden := range map[string]string{
		"missing API_KEY=sk-fake-123":                     "sk-fake-123",
		"using sk-fake-123456":                            "sk-fake-123456",
		`{"access_token": "abcdef123"}`:                   "abcdef123",
		"Authorization: Bearer abcdefgh12345":             "abcdefgh12345",
		"dial https://bob:hunter2@h/x":                    "hunter2",
		"ghp_0123456789abcdefABCD":                        "ghp_0123456789abcdefABCD",
		"eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl":  "eyJzdWIiOiIxMjM0",
		"db password: correct-horse":                      "correct-horse",
		"https://h/x?apikey=abcd1234&b=1 failed":          "abcd1234",
		"export AWS_SECRET_ACCESS_KEY='wJalrXUtnFEMIK7M'": "wJalrXUtnFEMIK7M",
	} {
		if got := r.Text(text); strings.Contains(got, hidden) || !strings.Contains(got, Mask) {
			t.Errorf("Text(%q) = %q", text, got)
		}
	}
	for _, text := range []string{"the token is invalid", `Bearer resource_metadata="https://h/x", error="invalid"`, "no key given", "basic auth", "see https://h/x", "task-list of 3"} {
		if got := r.Text(text); got != text {
			t.Errorf("Text(%q) = %q: took too much", text, got)
		}
	}
}

func TestRedactorLine(t *testing.T) {
	var r Redactor
	r.Add("hunter22")
	tests := []struct {
		in   string
		max  int
		want string
	}{
		{"a\n b\t\tc \r\n", 200, "a b c"},
		{"red \x1b[31mtext\x00", 200, `red \x1b[31mtext\x00`},
		{"turn \u202e back", 200, `turn \u202e back`},
		{"exactly10!", 10, "exactly10!"},
		{"exactly11!!", 10, "exactly11…"},
		{"żółć漢字🙂", 7, "żółć漢字🙂"},
		{"żółć漢字🙂x", 7, "żółć漢字…"},
		{"cut hunter22", 10, "cut [reda…"},
		{strings.Repeat(" ", 70<<10), 200, "…"},
	}
	for _, tc := range tests {
		if got := r.Line(tc.in, tc.max); got != tc.want {
			t.Errorf("Line(%.20q, %d) = %q, want %q", tc.in, tc.max, got, tc.want)
		}
	}
	long := strings.Repeat("\n", maxWindow-4) + "hunter22"
	if got := r.Line(long, 200); strings.Contains(got, "hunt") {
		t.Errorf("window cut a secret: %q", got)
	}
}

func TestTelling(t *testing.T) {
	for name, want := range map[string]bool{
		"OPENAI_API_KEY": true, "api_key": true, "GITHUB_TOKEN": true, "access-token": true, "PGPASSWORD": true, "AWS_SECRET_ACCESS_KEY": true,
		"key": true, "DB_PASS_WORD": false, "PATH": false, "HOME": false, "monkey": false, "SSH_AUTH_SOCK": false, "KEYBOARD": false, "TOKENIZERS_PARALLELISM": false,
	} {
		if got := Telling(name); got != want {
			t.Errorf("Telling(%q) = %v", name, got)
		}
	}
}

func TestRedactorConcurrent(t *testing.T) {
	var r Redactor
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			own := fmt.Sprintf("secret-value-%d", i)
			r.Add(own)
			for range 200 {
				if got := r.Text("x " + own); got != "x "+Mask {
					t.Errorf("Text = %q", got)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzRedactor: a known secret never survives, whatever surrounds it, and a
// line stays a line.
func FuzzRedactor(f *testing.F) {
	f.Add("pass+word", "a ", "\nb", 200)
	f.Add("%2B%2b", "%", "=", 20)
	f.Add("AAAAAAAA", "AAA", "AA", 200)
	f.Fuzz(func(t *testing.T, key, before, after string, max int) {
		if len(key) < minLen || strings.Contains(Mask, key) || strings.Contains(key, Mask) || max < 1 || max > 1000 {
			return
		}
		var r Redactor
		r.Add(key)
		// A secret can reappear across the seam of a mask ("[redacted]" + rest);
		// what must not stay is an occurrence of the input.
		got := r.Text(before + key + after)
		if strings.Count(got, key) > strings.Count(before+"\x00"+after, key) && !strings.ContainsAny(key, "[]") {
			t.Errorf("Text kept %q: %q", key, got)
		}
		line := r.Line(before+key+after, max)
		if n := utf8.RuneCountInString(line); n > max {
			t.Errorf("line of %d characters, max %d", n, max)
		}
		for _, c := range line {
			if unicode.IsControl(c) {
				t.Errorf("control character %q in %q", c, line)
			}
		}
	})
}
