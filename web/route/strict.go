package route

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// strict decodes one JSON object that has no names but v's, each spelt as v has
// it, and once.
func strict(raw []byte, v any) error {
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return malformed("not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			return malformed("more behind the JSON object")
		}
		return checkNames(raw)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
		return malformed("%s is of the wrong kind or too large: %s", name, shorten(wrong.Value))
	}
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return malformed("%s%w", where(raw[:max(syntax.Offset, 1)-1]), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("%s%w", where(raw), err)
	}
	return malformed("%s", shorten(strings.TrimPrefix(err.Error(), "json: ")))
}

// spot is a place in JSON text.
type spot struct {
	depth int    // objects and arrays that are open
	top   []byte // the last name of the outermost object
	name  []byte // the last name of any
	index int    // how many commas ago the second object or array was opened
}

// scan goes through JSON text, sound up to where it ends, and calls each at the
// names of objects. It returns the end.
func scan(raw []byte, each func(s *spot)) spot {
	var s spot
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			if s.depth++; s.depth == 2 {
				s.index = 0
			}
		case '}', ']':
			s.depth--
		case ',':
			if s.depth == 2 {
				s.index++
			}
		case '"':
			from := i + 1
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			i = min(i, len(raw))
			rest := bytes.TrimLeft(raw[min(i+1, len(raw)):], " \t\r\n")
			if len(rest) == 0 || rest[0] != ':' {
				continue
			}
			if s.name = raw[from:i]; s.depth == 1 {
				s.top = s.name
			}
			each(&s)
		}
	}
	return s
}

// checkNames refuses what encoding/json lets pass of an object: names in other
// letters, and names given twice. It has no others than are known.
func checkNames(raw []byte) (err error) {
	var seen []string
	scan(raw, func(s *spot) {
		if s.depth != 1 || err != nil {
			return
		}
		name := string(s.name)
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			err = malformed("unknown field %q", shorten(name))
			return
		}
		for _, other := range seen {
			if other == name {
				err = malformed("%s is given twice", name)
				return
			}
		}
		seen = append(seen, name)
	})
	return err
}

// where says how far a batch's text is sound: "item 5, at x: ".
func where(sound []byte) string {
	s := scan(sound, func(*spot) {})
	var b strings.Builder
	if s.depth >= 2 && string(s.top) == "items" {
		fmt.Fprintf(&b, "item %d", s.index)
	}
	if s.depth%2 == 1 && len(s.name) > 0 {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "at %s", shorten(string(s.name)))
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	return b.String()
}
