package formats

import "strings"

// aperioKeys reads the header of an Aperio ImageDescription: after the first
// part, every |key=value; the first equals sign parts them, a part without one
// is skipped, and of equal keys the last wins. Two headers joined by ";" keep
// only their first parts apart, so they read the same.
func aperioKeys(description string) map[string]string {
	keys := map[string]string{}
	_, rest, more := strings.Cut(description, "|")
	for more {
		var part string
		part, rest, more = strings.Cut(rest, "|")
		if key, value, ok := strings.Cut(part, "="); ok {
			keys[trimC(key)] = trimC(value)
		}
	}
	return keys
}

// aperioKind is the name in the second line of an associated image's
// description ("label 387x463"), or "".
func aperioKind(description string) string {
	_, line, ok := strings.Cut(description, "\n")
	if !ok {
		return ""
	}
	word, _, _ := strings.Cut(line, " ")
	switch word = trimC(word); word {
	case nameLabel, nameMacro:
		return word
	}
	return ""
}

// positive reads a header's number that only makes sense above zero.
func positive(s string) (float64, bool) {
	x, ok := parseDouble(s)
	return x, ok && x > 0 && x <= maxPositive
}

// maxPositive refuses infinity, and what no microscope could mean.
const maxPositive = 1e9
