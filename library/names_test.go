package library

import (
	"slices"
	"testing"
)

func TestIsSlideName(t *testing.T) {
	for name, want := range map[string]bool{
		"a.svs": true, "A.SVS": true, "a.tif": true, "a.ome.tif": true, "a.OME.TIFF": true, "a.btf": true, "a.tf8": true,
		"x_files.svs": true, "a b+c%20.svs": true, "scan.ndpi": true,
		"": false, "svs": false, "a.svs.bak": false, "a.txt": false, ".a.svs": false, "a.svs~": false,
	} {
		if got := isSlideName(name); got != want {
			t.Errorf("isSlideName(%q) = %v", name, got)
		}
	}
}

func TestValidPath(t *testing.T) {
	for p, want := range map[string]bool{
		"a.svs": true, "a b/c+d/%2e%2e/x_files.svs": true, "ünï/123/4.svs": true, "back\\slash.svs": true, "a\xff.svs": true,
		"": false, "/a": false, "a/": false, "a//b": false, ".": false, "..": false, "a/../b": false, "a/./b": false,
		".git/a.svs": false, "a/.hidden": false, "a\x00b": false,
	} {
		if got := validPath(p); got != want {
			t.Errorf("validPath(%q) = %v", p, got)
		}
	}
}

func TestCompareIDsOrder(t *testing.T) {
	want := []string{
		"A.svs", "a.svs", "a/z.svs", "a-1.svs", "a-2.svs", "a-010.svs", "a-10.svs", "a-10b.svs",
		"b/2/x.svs", "b/10/x.svs", "b/10/y.svs", "slide 9.svs", "Slide 10.svs",
		"x99999999999999999999998.svs", "x99999999999999999999999.svs",
	}
	slices.SortFunc(want, compareIDs)
	for i, a := range want {
		for j, b := range want {
			if c := compareIDs(a, b); (c < 0) != (i < j) || (c == 0) != (i == j) {
				t.Errorf("compareIDs(%q, %q) = %d", a, b, c)
			}
		}
	}
	before := func(a, b string) {
		if slices.Index(want, a) > slices.Index(want, b) {
			t.Errorf("%q stands after %q in %q", a, b, want)
		}
	}
	before("slide 9.svs", "Slide 10.svs")
	before("b/2/x.svs", "b/10/x.svs")
	before("x99999999999999999999998.svs", "x99999999999999999999999.svs")
	before("a-2.svs", "a-010.svs")
}

func FuzzCompareIDs(f *testing.F) {
	f.Add("a/1.svs", "a/01.svs", "A/1.svs")
	f.Add("a", "a/b", "a-b")
	f.Add("", "0", "00")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if x, y := compareIDs(a, b), compareIDs(b, a); (x < 0) != (y > 0) || (x == 0) != (y == 0) {
			t.Errorf("%q %q: %d and back %d", a, b, x, y)
		}
		if (compareIDs(a, b) == 0) != (a == b) {
			t.Errorf("%q %q: equal only by one account", a, b)
		}
		if compareIDs(a, b) < 0 && compareIDs(b, c) < 0 && compareIDs(a, c) >= 0 {
			t.Errorf("%q < %q < %q, but not the first and the last", a, b, c)
		}
	})
}
