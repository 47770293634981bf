package route

import (
	"strings"
	"testing"
)

// wellFormed fails when an id could name something outside a root.
func wellFormed(t *testing.T, id string) {
	t.Helper()
	if id == "" || strings.Contains(id, "\x00") || len(id) > MaxIDBytes {
		t.Fatalf("id %q", id)
	}
	for _, seg := range strings.Split(id, "/") {
		if seg == "" || seg == "." || seg == ".." {
			t.Fatalf("id %q has segment %q", id, seg)
		}
	}
}

func FuzzParseSlide(f *testing.F) {
	for _, id := range oddIDs {
		f.Add(EscapeID(id))
		f.Add(id + "/region")
		f.Add(id + "/levels/1/tiles/2/3")
		f.Add(id + "/associated/label")
	}
	f.Add("../%2e%2e/%00")
	f.Fuzz(func(t *testing.T, path string) {
		s, err := ParseSlide(path)
		if err != nil {
			return
		}
		wellFormed(t, s.ID)
		if s.Level < 0 || s.Col < 0 || s.Row < 0 {
			t.Fatalf("%q: %+v", path, s)
		}
		again, err := ParseSlide(EscapeID(s.ID))
		if err != nil || again != (Slide{ID: s.ID}) {
			t.Fatalf("%q: id %q reads back as %+v, %v", path, s.ID, again, err)
		}
	})
}

func FuzzParseRegion(f *testing.F) {
	f.Add("x=0&y=0&width=256&height=256")
	f.Add("x=-1&y=9007199254740992&width=1&height=16777216&mpp=.25&mpp_tolerance=0.02&format=npy")
	f.Add("x=0&y=0&width=1&height=1&magnification=40&background=%23ffffff&icc=embed&origin=bounds&c=1&z=2&t=3")
	f.Add("%78=1;&&==&x")
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := ParseRegion(raw)
		if err != nil {
			return
		}
		if q.Width < 1 || q.Height < 1 || q.Width > maxSide || q.Height > maxSide || !(q.Value >= 0) || q.Value > 1e308 ||
			!(q.Pixels.Tolerance >= 0 && q.Pixels.Tolerance < 1) || q.L0X > 1<<53 || q.L0X < -(1<<53) {
			t.Fatalf("%q: %+v", raw, q)
		}
		if q.Scale != ScaleLevel && q.Value == 0 {
			t.Fatalf("%q: scale 0", raw)
		}
	})
}

func FuzzFormatOf(f *testing.F) {
	f.Add("image/avif,image/webp,*/*;q=0.8")
	f.Add("image/png;q=0, */*")
	f.Fuzz(func(t *testing.T, accept string) {
		switch got, err := FormatOf(accept); got {
		case "", "png", "webp", "raw", "npy":
		default:
			t.Fatalf("%q: %q, %v", accept, got, err)
		}
	})
}
