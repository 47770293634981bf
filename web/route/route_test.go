package route

import (
	"errors"
	"testing"

	"github.com/microtome/microtome"
)

// Names of trap H1 and others that look like parts of the grammar.
var oddIDs = []string{
	"a.svs", "a+b.svs", "a b.svs", "a%20b.svs", "ünï.svs", "dir/sub.svs", "123/4.svs", "x_files.svs",
	"x_files/1/0_0.jpg", "region", "thumbnail", "x/region", "a/levels/0/tiles/0/0", "q?x=1#y.svs",
	"levels/levels.svs", "associated/label", "a..b/...svs", "50%.svs", "%2F.svs", "\xff\xfe.svs", `back\slash.svs`, "a;b,c.svs",
}

func TestEscapeIDRoundTrip(t *testing.T) {
	for _, id := range oddIDs {
		got, err := ID(EscapeID(id))
		if err != nil || got != id {
			t.Errorf("ID(EscapeID(%q)) = %q, %v", id, got, err)
		}
		s, err := ParseSlide(EscapeID(id))
		if err != nil || s.ID != id || s.Part != PartInfo {
			t.Errorf("ParseSlide of escaped %q = %+v, %v", id, s, err)
		}
		s, err = ParseSlide(EscapeID(id) + "/levels/2/tiles/3/4")
		if err != nil || s != (Slide{ID: id, Part: PartTile, Level: 2, Col: 3, Row: 4}) {
			t.Errorf("tile of %q = %+v, %v", id, s, err)
		}
	}
}

// Trap H2.
func TestIDRefuses(t *testing.T) {
	for _, c := range []struct {
		escaped string
		kind    error
	}{
		{"", microtome.ErrNotFound}, {"..", microtome.ErrNotFound}, {"../a.svs", microtome.ErrNotFound},
		{"%2e%2e%2fa.svs", microtome.ErrNotFound}, {"a/%2E%2E/b.svs", microtome.ErrNotFound},
		{"a/./b.svs", microtome.ErrNotFound}, {"/etc/passwd", microtome.ErrNotFound},
		{"%2Fetc%2Fpasswd", microtome.ErrNotFound}, {"a//b.svs", microtome.ErrNotFound},
		{"a/", microtome.ErrNotFound}, {"a%00.svs", microtome.ErrNotFound},
		{"a%2", microtome.ErrMalformed}, {"a%zz", microtome.ErrMalformed}, {"%", microtome.ErrMalformed},
	} {
		if id, err := ID(c.escaped); !errors.Is(err, c.kind) {
			t.Errorf("ID(%q) = %q, %v; want %v", c.escaped, id, err, c.kind)
		}
	}
}

func TestIDDecodesOnce(t *testing.T) {
	for escaped, want := range map[string]string{
		"a%2520b.svs": "a%20b.svs", "a+b.svs": "a+b.svs", "a%2Bb.svs": "a+b.svs",
		"%252e%252e/a.svs": "%2e%2e/a.svs", "dir%2fsub.svs": "dir/sub.svs", "%C3%BCn%C3%AF.svs": "ünï.svs",
	} {
		if got, err := ID(escaped); err != nil || got != want {
			t.Errorf("ID(%q) = %q, %v; want %q", escaped, got, err, want)
		}
	}
}

func TestParseSlide(t *testing.T) {
	for _, c := range []struct {
		path string
		want Slide
		kind error
	}{
		{path: "a.svs", want: Slide{ID: "a.svs"}},
		{path: "region", want: Slide{ID: "region"}},
		{path: "x/region", want: Slide{ID: "x", Part: PartRegion}},
		{path: "x%2Fregion", want: Slide{ID: "x/region"}},
		{path: "x/%72egion", want: Slide{ID: "x/region"}},
		{path: "region/region/region", want: Slide{ID: "region/region", Part: PartRegion}},
		{path: "d/a.svs/thumbnail", want: Slide{ID: "d/a.svs", Part: PartThumbnail}},
		{path: "d/a.svs/associated/macro", want: Slide{ID: "d/a.svs", Part: PartAssociated, Name: "macro"}},
		{path: "a.svs/associated/my%20name", want: Slide{ID: "a.svs", Part: PartAssociated, Name: "my name"}},
		{path: "a.svs/associated/thumbnail", want: Slide{ID: "a.svs", Part: PartAssociated, Name: "thumbnail"}},
		{path: "d%2Fassociated/thumbnail", want: Slide{ID: "d/associated", Part: PartThumbnail}},
		{path: "a.svs/associated/", kind: microtome.ErrNotFound},
		{path: "associated/label", want: Slide{ID: "associated/label"}},
		{path: "levels/0/tiles/0/0", want: Slide{ID: "levels/0/tiles/0/0"}},
		{path: "a.svs/levels/0/tiles/0", want: Slide{ID: "a.svs/levels/0/tiles/0"}},
		{path: "123/4.svs/levels/1/tiles/2/3", want: Slide{ID: "123/4.svs", Part: PartTile, Level: 1, Col: 2, Row: 3}},
		{path: "a/levels/x/tiles/0/0", kind: microtome.ErrMalformed},
		{path: "a/levels/0/tiles/1.5/0", kind: microtome.ErrMalformed},
		{path: "a/levels/0/tiles/+1/0", kind: microtome.ErrMalformed},
		{path: "a/levels/0/tiles/01/0", kind: microtome.ErrMalformed},
		{path: "a/levels/0/tiles/0/", kind: microtome.ErrMalformed},
		{path: "a/levels/-1/tiles/0/0", kind: microtome.ErrNotFound},
		{path: "a/levels/0/tiles/0/99999999999999999999999999", kind: microtome.ErrNotFound},
		{path: "a/levels/0/tiles/0/2147483648", kind: microtome.ErrNotFound},
		{path: "../a/region", kind: microtome.ErrNotFound},
		{path: "", kind: microtome.ErrNotFound},
		{path: "/region", kind: microtome.ErrNotFound},
	} {
		got, err := ParseSlide(c.path)
		if c.kind != nil {
			if !errors.Is(err, c.kind) {
				t.Errorf("ParseSlide(%q) = %+v, %v; want %v", c.path, got, err, c.kind)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("ParseSlide(%q) = %+v, %v; want %+v", c.path, got, err, c.want)
		}
	}
}

func TestParseRegion(t *testing.T) {
	q, err := ParseRegion("x=-5&y=7&width=256&height=128&mpp=0.5&mpp_tolerance=.1&c=1&z=2&t=3&background=%23fF8000&icc=embed&origin=bounds&format=jpg&quality=90&v=abc&image=0")
	if err != nil {
		t.Fatal(err)
	}
	if q.L0X != -5 || q.L0Y != 7 || q.Width != 256 || q.Height != 128 || q.Scale != ScaleMPP || q.Value != .5 || q.Pixels.Tolerance != .1 {
		t.Errorf("region %+v", q)
	}
	bg := q.Pixels.Background
	q.Pixels.Background = nil
	if bg == nil || *bg != (microtome.RGB{R: 255, G: 128}) {
		t.Errorf("background %v", bg)
	}
	want := Pixels{C: 1, Z: 2, T: 3, Format: "jpeg", Quality: 90, EmbedICC: true, Bounds: true, Tolerance: .1, Version: "abc", VersionSeen: true}
	if q.Pixels != want {
		t.Errorf("pixels %+v, want %+v", q.Pixels, want)
	}
	const rect = "x=0&y=0&width=1&height=1"
	for scale, want := range map[string]ScaleKind{
		"": ScaleLevel, "&level=2": ScaleLevel, "&magnification=20": ScaleMagnification, "&downsample=3.5": ScaleDownsample,
	} {
		if q, err := ParseRegion(rect + scale); err != nil || q.Scale != want {
			t.Errorf("%q: %+v, %v", scale, q, err)
		}
	}
}

func TestParseRegionRefuses(t *testing.T) {
	const rect = "x=0&y=0&width=1&height=1"
	for query, kind := range map[string]error{
		"": microtome.ErrMalformed, "x=0&y=0&width=1": microtome.ErrMalformed,
		rect + "&x=1": microtome.ErrMalformed, rect + "&level=0&mpp=1": microtome.ErrMalformed,
		rect + "&widht=4": microtome.ErrMalformed, rect + "&level=x": microtome.ErrMalformed,
		rect + "&level=-1": microtome.ErrNotFound, rect + "&mpp=0": microtome.ErrMalformed,
		rect + "&mpp=0x1p4": microtome.ErrMalformed, rect + "&mpp=0x1_0p4": microtome.ErrMalformed, rect + "&mpp=%2B1": microtome.ErrMalformed,
		rect + "&mpp=NaN": microtome.ErrMalformed, rect + "&mpp=Inf": microtome.ErrMalformed,
		rect + "&downsample=-1": microtome.ErrMalformed, rect + "&downsample=1e999": microtome.ErrMalformed,
		rect + "&mpp_tolerance=1": microtome.ErrMalformed, rect + "&format=gif": microtome.ErrUnsupported,
		rect + "&quality=0": microtome.ErrMalformed, rect + "&quality=101": microtome.ErrMalformed,
		rect + "&background=red": microtome.ErrMalformed, rect + "&background=12345": microtome.ErrMalformed,
		rect + "&icc=srgb": microtome.ErrMalformed, rect + "&origin=x": microtome.ErrMalformed,
		rect + "&image=1": microtome.ErrNotFound, rect + "&c=-1": microtome.ErrNotFound, rect + "&z=a": microtome.ErrMalformed,
		rect + "&%zz=1": microtome.ErrMalformed, rect + "&v=%": microtome.ErrMalformed,
		"x=0&y=0&width=0&height=1":                microtome.ErrMalformed,
		"x=0&y=0&width=1&height=-1":               microtome.ErrMalformed,
		"x=0&y=0&width=1&height=99999999":         microtome.ErrMalformed,
		"x=+1&y=0&width=1&height=1":               microtome.ErrMalformed,
		"x=9007199254740993&y=0&width=1&height=1": microtome.ErrMalformed,
		"x=&y=0&width=1&height=1":                 microtome.ErrMalformed,
		"x=1.5&y=0&width=1&height=1":              microtome.ErrMalformed,
	} {
		if q, err := ParseRegion(query); !errors.Is(err, kind) {
			t.Errorf("ParseRegion(%q) = %+v, %v; want %v", query, q, err, kind)
		}
	}
}

func TestFormatOf(t *testing.T) {
	for accept, want := range map[string]string{
		"": "", "*/*": "", "image/*": "", "image/jpeg": "", "image/png": "png", "IMAGE/PNG": "png",
		"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8": "",
		"image/webp, image/png;q=0.5":                                      "png",
		"image/webp":                                                       "webp", "application/octet-stream": "raw", "application/x-npy": "npy",
		"image/jpeg;q=0, */*": "png", "image/*;q=0, image/webp": "webp",
	} {
		if got, err := FormatOf(accept); err != nil || got != want {
			t.Errorf("FormatOf(%q) = %q, %v; want %q", accept, got, err, want)
		}
	}
	for _, accept := range []string{"text/html", "image/gif", "image/*;q=0", "*/*;q=0.0"} {
		if got, err := FormatOf(accept); !errors.Is(err, microtome.ErrUnsupported) {
			t.Errorf("FormatOf(%q) = %q, %v", accept, got, err)
		}
	}
}
