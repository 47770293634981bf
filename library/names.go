package library

import (
	"path"
	"strings"
)

// suffixes are the names that slide files end in. Some belong to formats that
// are not read: those slides are listed, with the reason, so that nobody has to
// wonder where they went.
var suffixes = map[string]bool{
	".svs": true, ".tif": true, ".tiff": true, ".btf": true, ".tf2": true, ".tf8": true,
	".gtif": true, ".gtiff": true, ".qptiff": true, ".svslide": true,
	".ndpi": true, ".scn": true, ".bif": true, ".mrxs": true, ".vms": true, ".vmu": true,
	".czi": true, ".isyntax": true,
}

// isSlideName says whether a file of that name is taken for a slide.
func isSlideName(name string) bool {
	return !hidden(name) && suffixes[strings.ToLower(path.Ext(name))]
}

// hidden says whether a file or folder of that name is passed over.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// validPath says whether p is a path that can lie below a root: slash-separated
// names, none of them empty, hidden or a dot segment, and no NUL. Everything
// else may stand in a name: a blank, a plus, a percent sign, any byte.
func validPath(p string) bool {
	if p == "" || strings.IndexByte(p, 0) >= 0 {
		return false
	}
	for name := range strings.SplitSeq(p, "/") {
		if name == "" || hidden(name) { // hidden covers "." and ".."
			return false
		}
	}
	return true
}

// compareIDs orders ids as people expect: folder by folder, numbers by value
// ("slide 9" before "slide 10"), without regard to case; equal ones by bytes,
// so that the order is total and stable.
func compareIDs(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		i, j := elementLen(x), elementLen(y)
		if c := compareNames(x[:i], y[:j]); c != 0 {
			return c
		}
		x, y = strings.TrimPrefix(x[i:], "/"), strings.TrimPrefix(y[j:], "/")
	}
	if len(x) != len(y) {
		return len(x) - len(y)
	}
	return strings.Compare(a, b)
}

func elementLen(p string) int {
	if i := strings.IndexByte(p, '/'); i >= 0 {
		return i
	}
	return len(p)
}

func compareNames(x, y string) int {
	i, j := 0, 0
	for i < len(x) && j < len(y) {
		if isDigit(x[i]) && isDigit(y[j]) {
			m, n := digits(x[i:]), digits(y[j:])
			if c := compareNumbers(x[i:i+m], y[j:j+n]); c != 0 {
				return c
			}
			i, j = i+m, j+n
			continue
		}
		if c := int(lower(x[i])) - int(lower(y[j])); c != 0 {
			return c
		}
		i, j = i+1, j+1
	}
	if c := (len(x) - i) - (len(y) - j); c != 0 {
		return c
	}
	return strings.Compare(x, y)
}

// compareNumbers compares two runs of digits of any length by value.
func compareNumbers(x, y string) int {
	x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	if len(x) != len(y) {
		return len(x) - len(y)
	}
	return strings.Compare(x, y)
}

func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
