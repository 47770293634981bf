package web

import (
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/microtome/microtome/web/route"
	"github.com/microtome/microtome/web/viewer"
)

// pages are the viewer's files.
type pages struct {
	files fs.FS
}

func newPages() (pages, error) {
	p := pages{files: viewer.Assets()}
	for _, name := range [...]string{viewer.GalleryPage, viewer.SlidePage, viewer.StatusPage} {
		if _, err := fs.Stat(p.files, name); err != nil {
			return p, fmt.Errorf("web: the viewer's bundle: %w", err)
		}
	}
	return p, nil
}

// The security headers of pages. Styles may stand in the page, scripts may not.
var (
	headerCSP = []string{"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; " +
		"base-uri 'self'; form-action 'self'; frame-ancestors 'self'"}
	headerFrame       = []string{"SAMEORIGIN"}
	headerOpener      = []string{"same-origin"}
	headerPermissions = []string{"camera=(), microphone=(), geolocation=(), payment=(), usb=()"}
)

func pageHeaders(h http.Header) {
	h["Content-Type"] = headerHTML
	h["Content-Security-Policy"] = headerCSP
	h["X-Frame-Options"] = headerFrame
	h["Referrer-Policy"] = headerNoReferrer
	h["Cross-Origin-Opener-Policy"] = headerOpener
	h["Permissions-Policy"] = headerPermissions
}

// gallery answers /.
func (s *server) gallery(x *exchange, r *http.Request) error {
	x.route = routeGallery
	return s.page(x, r, viewer.GalleryPage, http.StatusOK)
}

// toGallery sends a base path without its slash to the gallery.
func (s *server) toGallery(x *exchange, r *http.Request) error {
	x.route = routeGallery
	x.Header()["Location"] = []string{x.prefix + "/"}
	x.WriteHeader(http.StatusPermanentRedirect)
	return nil
}

// viewPage answers /view/{id}. The page itself says why a slide cannot be
// shown; only an unknown slide changes the status.
func (s *server) viewPage(x *exchange, r *http.Request) error {
	x.route = routeView
	rest, err := s.below(r, "/view/")
	if err != nil {
		return err
	}
	id, err := route.ID(rest)
	if err != nil {
		return err
	}
	x.slideID = id
	status := http.StatusOK
	h, err := s.opt.Library.Acquire(r.Context(), id)
	switch {
	case err == nil:
		h.Release()
	case explain(err, id).status == http.StatusNotFound:
		status = http.StatusNotFound
	}
	return s.page(x, r, viewer.SlidePage, status)
}

func (s *server) page(x *exchange, r *http.Request, name string, status int) error {
	body, err := viewer.Page(name, x.prefix+"/")
	if err != nil {
		return err
	}
	pageHeaders(x.Header())
	if status != http.StatusOK {
		x.Header()["Cache-Control"] = headerNoStore
		return x.body(r, status, body)
	}
	return s.writeTagged(x, r, body)
}

// tokenPage asks a person for the token; the answer is a 401 all the same.
func (s *server) tokenPage(x *exchange) {
	pageHeaders(x.Header())
	x.WriteHeader(http.StatusUnauthorized)
	_, _ = x.Write([]byte(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Microtome</title>
<meta name="viewport" content="width=device-width">
<body style="font-family: sans-serif; max-width: 30em; margin: 4em auto">
<h1>Microtome</h1><p>This server asks for its token. It was set, or printed, when the server was started.</p>
<form method="get"><input name="token" type="password" autocomplete="current-password" aria-label="token" autofocus>
<button>Enter</button></form></body></html>
`))
}

// assetTypes are the content types of the bundle's files.
var assetTypes = map[string][]string{
	".js": {"text/javascript; charset=utf-8"}, ".css": {"text/css; charset=utf-8"},
	".svg": {"image/svg+xml"}, ".png": {"image/png"}, ".ico": {"image/x-icon"},
	".woff2": {"font/woff2"}, ".json": headerJSON, ".map": headerJSON,
	".txt": {"text/plain; charset=utf-8"},
}

// asset answers /assets/… and /licenses.txt: files of the bundle. Names under
// assets/ carry a hash of their content.
func (s *server) asset(x *exchange, r *http.Request) error {
	x.route = routeAsset
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, s.door.base), "/")
	kind, ok := assetTypes[path.Ext(name)]
	if !ok || !fs.ValidPath(name) {
		return errNoRoute
	}
	body, err := fs.ReadFile(s.pages.files, name)
	if err != nil {
		return errNoRoute
	}
	x.Header()["Content-Type"] = kind
	if strings.HasPrefix(name, "assets/") {
		x.Header()["Cache-Control"] = s.control[1]
		return x.body(r, http.StatusOK, body)
	}
	return s.writeTagged(x, r, body)
}

// favicon answers /favicon.ico, which browsers ask for unbidden: without a file
// in the bundle there is none, and that is no error on their consoles.
func (s *server) favicon(x *exchange, r *http.Request) error {
	if _, err := fs.Stat(s.pages.files, "favicon.ico"); err == nil {
		return s.asset(x, r)
	}
	x.route = routeAsset
	x.Header()["Cache-Control"] = s.control[0]
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// below is the escaped path after a prefix of ours.
func (s *server) below(r *http.Request, prefix string) (string, error) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), s.door.base)
	if ok {
		rest, ok = strings.CutPrefix(rest, prefix)
	}
	if !ok {
		return "", errNoRoute
	}
	return rest, nil
}
