// Package route is the URL grammar of slides: which slide and which part of it
// an escaped path and a query name.
package route

import (
	"fmt"
	"strings"

	"github.com/microtome/microtome"
)

// MaxIDBytes bounds a decoded slide id (PATH_MAX of Linux).
const MaxIDBytes = 4096

// ID decodes the escaped text of a slide id, exactly once. A '/' may be plain
// or %2F. Empty, "." and ".." segments, a leading slash and NUL are
// ErrNotFound: no served slide can have such a name.
func ID(escaped string) (string, error) {
	id, err := unescape(escaped, false)
	if err != nil {
		return "", err
	}
	if !validID(id) {
		return "", fmt.Errorf("slide id: %w", microtome.ErrNotFound)
	}
	return id, nil
}

func validID(id string) bool {
	if id == "" || len(id) > MaxIDBytes || strings.IndexByte(id, 0) >= 0 {
		return false
	}
	for rest, more := id, true; more; {
		var seg string
		seg, rest, more = strings.Cut(rest, "/")
		if seg == "" || seg == "." || seg == ".." {
			return false
		}
	}
	return true
}

// EscapeID is the inverse of ID for links: every byte outside RFC 3986's
// unreserved set is percent-encoded, and '/' is %2F, so that the result is one
// path segment that no suffix of the grammar can be mistaken for.
func EscapeID(id string) string {
	n := 0
	for i := 0; i < len(id); i++ {
		if !unreserved(id[i]) {
			n++
		}
	}
	if n == 0 {
		return id
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(id)+2*n)
	for i := 0; i < len(id); i++ {
		if c := id[i]; unreserved(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}

// unreserved is RFC 3986 §2.3.
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// unescape decodes percent escapes once. In a query '+' is a space; in a path
// it is itself.
func unescape(s string, query bool) (string, error) {
	if strings.IndexByte(s, '%') < 0 && (!query || strings.IndexByte(s, '+') < 0) {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%':
			if i+2 >= len(s) || hexValue(s[i+1]) < 0 || hexValue(s[i+2]) < 0 {
				return "", fmt.Errorf("percent escape: %w", microtome.ErrMalformed)
			}
			out = append(out, byte(hexValue(s[i+1])<<4|hexValue(s[i+2])))
			i += 2
		case c == '+' && query:
			out = append(out, ' ')
		default:
			out = append(out, c)
		}
	}
	return string(out), nil
}

func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// Number reads a level, column or row: decimal digits without leading zeros.
// A negative or very large number is ErrNotFound (well-formed, but nothing
// is there), anything else ErrMalformed.
func Number(what, s string) (int, error) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] == '0' && s != "0" {
		return 0, fmt.Errorf("%s is not a number: %w", what, microtome.ErrMalformed)
	}
	n := 0
	for i := 0; i < len(digits); i++ {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%s is not a number: %w", what, microtome.ErrMalformed)
		}
		if n <= 1<<31 {
			n = n*10 + int(c-'0')
		}
	}
	if len(digits) != len(s) || n > 1<<31-1 {
		return 0, fmt.Errorf("%s %s: %w", what, shorten(s), microtome.ErrNotFound)
	}
	return n, nil
}

// shorten keeps echoed input small.
func shorten(s string) string {
	if len(s) > 24 {
		return s[:24] + "…"
	}
	return s
}
