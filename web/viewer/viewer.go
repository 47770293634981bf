// Package viewer holds the gallery, viewer and status pages, embedded.
//
// The pages are bundled from src by npm into dist, which is not committed; a
// build without the bundle embeds a page that says how to make it.
package viewer

import (
	"bytes"
	"embed"
	"fmt"
	"html"
	"io/fs"
)

// The names of the pages in [Assets]. Every other file lies under assets/ and
// carries a hash of its content in its name, so it never changes; licenses.txt
// holds the texts of the bundled libraries' licences.
const (
	GalleryPage = "index.html"
	SlidePage   = "view.html"
	StatusPage  = "status.html"
)

// baseTag is in the head of each page. All addresses in the pages and scripts
// are relative to it, because a slide's id, and so the depth of its page's
// address, holds any number of slashes.
const baseTag = `<base href="/">`

//go:embed placeholder all:dist
var files embed.FS

// Assets returns the bundled files, or the placeholder pages in a build without
// the bundle.
func Assets() fs.FS {
	if Bundled() {
		return folder("dist")
	}
	return folder("placeholder")
}

// Bundled says whether the real pages are in this build, all of them: a bundle
// of older sources is none.
func Bundled() bool {
	for _, page := range [...]string{GalleryPage, SlidePage, StatusPage} {
		if _, err := fs.Stat(files, "dist/"+page); err != nil {
			return false
		}
	}
	return true
}

// Page returns the HTML of one of the pages for a server whose root is
// base: a path that begins and ends with a slash, as the browser sees it.
func Page(name, base string) ([]byte, error) {
	page, err := fs.ReadFile(Assets(), name)
	if err != nil {
		return nil, fmt.Errorf("viewer page: %w", err)
	}
	tag := `<base href="` + html.EscapeString(base) + `">`
	return bytes.Replace(page, []byte(baseTag), []byte(tag), 1), nil
}

// folder is a subtree of the embedded files.
func folder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // only for an invalid name, and both names are above
	}
	return sub
}
