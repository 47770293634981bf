package route

import (
	"strconv"
	"strings"

	"github.com/microtome/microtome"
)

// mediaTypes are the answers that Accept can ask for, in order of preference.
var mediaTypes = [...]struct{ media, format string }{
	{"image/jpeg", "jpeg"},
	{"image/png", "png"},
	{"image/webp", "webp"},
	{"application/octet-stream", "raw"},
	{"application/x-npy", "npy"},
}

// FormatOf chooses a format by an Accept header (RFC 9110 §12.5.1). It returns
// "" whenever JPEG will do (no header, image/*, */*), so that a browser, which
// lists webp first, still gets the stored bytes; else the first format of the
// list that is accepted with a weight above 0; else ErrUnsupported.
func FormatOf(accept string) (string, error) {
	if accept == "" || accept == "*/*" {
		return "", nil
	}
	for i, m := range mediaTypes {
		if !accepts(accept, m.media) {
			continue
		}
		if i == 0 {
			return "", nil
		}
		return m.format, nil
	}
	return "", &microtome.Unsupported{Tag: "Accept", Value: strconv.Quote(shorten(accept))}
}

// accepts looks for the most specific range that covers media.
func accepts(accept, media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	best, ok := 0, false
	for rest, more := accept, true; more; {
		var item string
		item, rest, more = strings.Cut(rest, ",")
		name, params, _ := strings.Cut(item, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		rank := 0
		switch name {
		case media:
			rank = 3
		case kind + "/*":
			rank = 2
		case "*/*":
			rank = 1
		}
		if rank > best {
			best, ok = rank, !zeroWeight(params)
		}
	}
	return ok
}

// zeroWeight finds q=0.
func zeroWeight(params string) bool {
	for rest, more := params, true; more; {
		var p string
		p, rest, more = strings.Cut(rest, ";")
		key, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(key, "q") {
			f, err := strconv.ParseFloat(value, 64)
			return err == nil && f == 0
		}
	}
	return false
}
