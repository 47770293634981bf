package web

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/microtome/microtome/web/route"
)

var oddNames = []string{
	"a+b.svs", "a b.svs", "a%20b.svs", "ünï.svs", "dir/sub.svs", "123/4.svs", "x_files.svs",
	"x_files/region/0_0.svs", "levels/0/tiles/0/0.svs", "50%.svs", "q?x#y.svs",
}

// Trap H1: every name is reachable in each protocol, plain, escaped by a
// browser's encodeURIComponent, and with '/' as %2F.
func TestH1Names(t *testing.T) {
	s := newSite(t, oddNames, nil)
	for _, name := range oddNames {
		plain := (&url.URL{Path: name}).EscapedPath()
		for _, id := range []string{plain, route.EscapeID(name), strings.ReplaceAll(plain, "/", "%2f")} {
			for _, target := range []string{
				"/deepzoom/" + id + ".dzi", "/deepzoom/" + id + "_files/10/0_0.jpg", "/slides/" + id, "/view/" + id,
				"/slides/" + id + "/levels/0/tiles/0/0", "/slides/" + id + "/region?x=0&y=0&width=4&height=4",
				"/slides/" + id + "/thumbnail", "/slides/" + id + "/associated/thumbnail",
			} {
				w := s.get(target)
				want(t, target, w, 200, "")
				if strings.HasSuffix(target, ".jpg") && s.reader.last(t).Slide != "slide "+name {
					t.Errorf("%s: pixels of %q", target, s.reader.last(t).Slide)
				}
			}
		}
	}
}

// The addresses that the listing gives out lead to their slides.
func TestListedAddresses(t *testing.T) {
	s := newSite(t, oddNames, nil)
	list := s.list(t, "?recursive=1&limit=1000")
	if list.Total != len(oddNames)+2 {
		t.Fatalf("%d slides listed, want %d", list.Total, len(oddNames)+2)
	}
	for _, e := range list.Slides {
		for _, target := range []string{e.URL, e.View, e.Thumbnail} {
			want(t, target, s.get(target), 200, "")
		}
		var d slideJSON
		if err := json.Unmarshal(s.get(e.URL).Body.Bytes(), &d); err != nil || d.ID != e.ID {
			t.Errorf("%s: id %q, %v", e.URL, d.ID, err)
		}
		for name, target := range d.URLs {
			target = strings.NewReplacer("{level}", "0", "{col}", "0", "{row}", "0").Replace(target)
			if name == "region" {
				target += "&x=0&y=0&width=1&height=1"
			}
			want(t, target, s.get(target), 200, "")
		}
		want(t, d.DeepZoom.URL, s.get(d.DeepZoom.URL), 200, "")
	}
}

// Trap H2: nothing outside the root.
func TestH2Outside(t *testing.T) {
	s := newSite(t, nil, nil)
	secret := filepath.Join(filepath.Dir(s.dir), "secret.svs")
	if err := os.WriteFile(secret, []byte("slide secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(secret) })
	if err := os.Symlink(secret, filepath.Join(s.dir, "link.svs")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{
		"../secret.svs", "%2e%2e/secret.svs", "%2e%2e%2fsecret.svs", "x/../../secret.svs", "./a.svs", "a.svs/.",
		url.PathEscape(secret), secret, "link.svs", "a.svs%00", "%00", "..%2f..%2f..%2fetc%2fpasswd", "%5c..%5csecret.svs",
	} {
		for _, target := range []string{
			"/slides/" + id, "/deepzoom/" + id + ".dzi", "/deepzoom/" + id + "_files/10/0_0.jpg", "/slides/" + id + "/thumbnail",
			"/slides/" + id + "/region?x=0&y=0&width=1&height=1", "/slides/" + id + "/levels/0/tiles/0/0",
		} {
			if w := s.get(target); w.Code != 404 && w.Code != 403 {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
		}
	}
	if n := s.reader.count(); n != 0 {
		t.Errorf("the reader was asked %d times", n)
	}
}
