package http1

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// AppendHead writes the request line and the headers of a request but for the
// length of its body and the empty line, which AppendLength adds. A header of h
// named Host replaces that of the URL. A name or value that would break the
// request in two is an error.
func AppendHead(buf []byte, method string, u *url.URL, host string, h http.Header) ([]byte, error) {
	target := u.RequestURI()
	if !token(method) || !clean(target) || strings.Contains(target, " ") {
		return nil, fmt.Errorf("http1: request line %q %q cannot be sent", method, target)
	}
	if own := h["Host"]; len(own) > 0 {
		host = own[0]
	}
	if !clean(host) {
		return nil, fmt.Errorf("http1: host %q cannot be sent", host)
	}
	buf = append(buf, method...)
	buf = append(buf, ' ')
	buf = append(buf, target...)
	buf = append(buf, " HTTP/1.1\r\nHost: "...)
	buf = append(buf, host...)
	buf = append(buf, "\r\n"...)
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if framing(name) {
			continue
		}
		for _, value := range h[name] {
			if !token(name) || !clean(value) {
				return nil, fmt.Errorf("http1: header %q holds what cannot be sent", name)
			}
			if name == "User-Agent" && value == "" {
				continue
			}
			buf = append(buf, name...)
			buf = append(buf, ": "...)
			buf = append(buf, strings.Trim(value, " \t")...)
			buf = append(buf, "\r\n"...)
		}
	}
	return buf, nil
}

// framing headers say where a request ends, or whose it is: they are ours.
func framing(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
		return true
	}
	return false
}

// AppendLength ends the head of a request with a body of n bytes.
func AppendLength(buf []byte, n int) []byte {
	buf = append(buf, "Content-Length: "...)
	buf = appendDecimal(buf, n)
	return append(buf, "\r\n\r\n"...)
}

func appendDecimal(buf []byte, n int) []byte {
	var digits [20]byte
	i := len(digits)
	for {
		i--
		digits[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return append(buf, digits[i:]...)
		}
	}
}

func token(s string) bool {
	for i := range len(s) {
		if !tokenByte[s[i]] {
			return false
		}
	}
	return s != ""
}

func clean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
