package viewer_test

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/microtome/microtome/web/viewer"
)

func TestPagesFollowTheBase(t *testing.T) {
	for _, name := range []string{viewer.GalleryPage, viewer.SlidePage, viewer.StatusPage} {
		for base, want := range map[string]string{
			"/":         `<base href="/">`,
			"/slides/":  `<base href="/slides/">`,
			`/a"b<c>&/`: `<base href="/a&#34;b&lt;c&gt;&amp;/">`,
		} {
			page, err := viewer.Page(name, base)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(page, []byte(want)) || bytes.Count(page, []byte("<base")) != 1 {
				t.Errorf("%s for %s does not hold %s", name, base, want)
			}
		}
	}
	if _, err := viewer.Page("none.html", "/"); err == nil {
		t.Error("a page that does not exist was returned")
	}
}

// Nothing may come from elsewhere: the pages work without a network, and under
// any base path.
func TestPagesAreRelativeAndWithoutInlineCode(t *testing.T) {
	for _, name := range []string{viewer.GalleryPage, viewer.SlidePage, viewer.StatusPage} {
		page, err := fs.ReadFile(viewer.Assets(), name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(page), `<base href="/">`, "", 1)
		for _, bad := range []string{"http:", "https:", `="/`, "onclick", "style=", "<style", "<script>"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s holds %q", name, bad)
			}
		}
	}
}
