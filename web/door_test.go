package web

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// DNS rebinding: a foreign name never reaches a slide.
func TestHosts(t *testing.T) {
	local := newSite(t, nil, func(o *Options) { o.Loopback, o.Hosts = true, []string{"Slides.example.org"} })
	open := newSite(t, nil, nil)
	any := newSite(t, nil, func(o *Options) { o.Hosts = []string{"*"} })
	for _, c := range []struct {
		s    *site
		host string
		ok   bool
	}{
		{local, "localhost", true}, {local, "LOCALHOST:8080", true}, {local, "localhost.", true}, {local, "127.0.0.1:1", true}, {local, "127.0.0.1", true},
		{local, "[::1]:8080", true}, {local, "[::1]", true}, {local, "slides.example.org:8080", true}, {local, "SLIDES.example.org", true},
		{local, "evil.example", false}, {local, "evil.example:8080", false}, {local, "192.168.1.5", false}, {local, "localhost.evil.example", false},
		{local, "127.0.0.1.evil.example", false}, {local, "[::1", false}, {local, "a:b:c", false},
		{open, "192.168.1.5:8080", true}, {open, "localhost", true}, {open, "[2001:db8::1]:80", true}, {open, "evil.example", false},
		{any, "anything.example", true},
	} {
		w := c.s.get("/slides/a.svs", "Host: "+c.host)
		if c.ok {
			want(t, c.host, w, 200, "")
		} else {
			want(t, c.host, w, 403, "host_not_allowed")
		}
	}
}

func TestToken(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.Token = "s3cret+/=" })
	for _, target := range []string{"/", "/view/a.svs", "/slides", "/slides/a.svs", tileURL, "/metrics", "/status", "/status.json", "/openapi.json", "/assets/x.js", "/nothing"} {
		w := s.get(target)
		want(t, target, w, 401, "token_needed")
		if !strings.HasPrefix(w.Header().Get("Www-Authenticate"), "Bearer") {
			t.Errorf("%s: %v", target, w.Header())
		}
	}
	for _, target := range []string{"/healthz", "/readyz"} {
		want(t, target, s.get(target), 200, "")
	}
	for _, header := range []string{
		"Authorization: Bearer wrong", "Authorization: Bearer ", "Authorization: Basic s3cret+/=", "Authorization: s3cret+/=", "Cookie: microtome=s3cret+/=",
	} {
		want(t, header, s.get(tileURL, header), 401, "token_needed")
	}
	want(t, "bearer", s.get(tileURL, "Authorization: Bearer s3cret+/="), 200, "")
	want(t, "bearer", s.get(tileURL, "Authorization: bearer s3cret+/="), 200, "")
	want(t, "query", s.get(tileURL+"?tile=99&token=s3cret%2B%2F%3D"), 200, "")
	want(t, "wrong query", s.get(tileURL+"?token=s3cret"), 401, "token_needed")

	w := s.get("/view/a.svs?x=1&token=s3cret%2B/=&y=2", "Accept: text/html")
	want(t, "page", w, http.StatusSeeOther, "")
	if got := w.Header().Get("Location"); got != "/view/a.svs?x=1&y=2" {
		t.Errorf("Location %q", got)
	}
	cookie := w.Result().Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure || cookie.Path != "/" || strings.Contains(cookie.Value, "s3cret") {
		t.Errorf("cookie %+v", cookie)
	}
	want(t, "cookie", s.get(tileURL, "Cookie: other=1; "+cookie.Name+"="+cookie.Value), 200, "")
	want(t, "false cookie", s.get(tileURL, "Cookie: "+cookie.Name+"="+cookie.Value+"0"), 401, "token_needed")

	w = s.get("/", "Accept: text/html,*/*")
	if w.Code != 401 || !strings.Contains(w.Body.String(), `name="token"`) || w.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("page without token: %d %s", w.Code, w.Body)
	}
	if strings.Contains(s.log.String(), "s3cret") {
		t.Error("the log holds the token")
	}
}

// Trap G8: CORS headers also on errors.
func TestG8CORS(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.CORS, o.Token = []string{"https://viewer.example"}, "t" })
	const auth, origin = "Authorization: Bearer t", "Origin: https://viewer.example"
	for target, status := range map[string]int{tileURL: 200, "/slides/none": 404, "/slides/a.svs/region": 400, "/x": 404} {
		w := s.get(target, origin, auth)
		if w.Code != status || w.Header().Get("Access-Control-Allow-Origin") != "https://viewer.example" ||
			!strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "Microtome-Tile") || !strings.Contains(w.Header().Get("Vary"), "Origin") {
			t.Errorf("%s: %d %v", target, w.Code, w.Header())
		}
		if w := s.get(target, "Origin: https://evil.example", auth); w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: foreign origin let in", target)
		}
	}
	for _, w := range []*httptest.ResponseRecorder{
		s.get(tileURL, origin), s.get(tileURL, origin, "Host: evil.example"), s.do("POST", tileURL, origin, auth),
		s.get(tileURL+"?"+strings.Repeat("x", 9000), origin, auth),
	} {
		if w.Code < 400 || w.Header().Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("refusal %d: %v", w.Code, w.Header())
		}
	}
	w := s.do("OPTIONS", tileURL, origin, "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: authorization")
	if w.Code != 204 || w.Header().Get("Access-Control-Allow-Methods") == "" || !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight %d %v", w.Code, w.Header())
	}
	closed := newSite(t, nil, nil)
	if w := closed.get(tileURL, origin); w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Cross-Origin-Resource-Policy") != "same-origin" {
		t.Errorf("without CORS: %v", w.Header())
	}
	all := newSite(t, nil, func(o *Options) { o.CORS = []string{"*"} })
	if w := all.get("/slides/none", "Origin: null"); w.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("any origin: %v", w.Header())
	}
}

func TestBasePath(t *testing.T) {
	s := newSite(t, []string{"dir/c d.svs"}, func(o *Options) { o.BasePath, o.Token = "/a/b/", "t" })
	const auth = "Authorization: Bearer t"
	for target, status := range map[string]int{
		"/a/b/": 200, "/a/b/slides": 200, "/a/b" + tileURL: 200, "/a/b/slides/dir%2Fc%20d.svs": 200, "/a/b/slides/dir/c%20d.svs/thumbnail": 200,
		"/a/b/view/a.svs": 200, tileURL: 404, "/": 404, "/a/bslides": 404,
	} {
		if w := s.get(target, auth); w.Code != status {
			t.Errorf("%s: %d, want %d", target, w.Code, status)
		}
	}
	if w := s.get("/a/b", auth); w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "/a/b/" {
		t.Errorf("/a/b: %d %v", w.Code, w.Header())
	}
	want(t, "healthz", s.get("/a/b/healthz"), 200, "")
	if w := s.get("/a/b/", auth); !strings.Contains(w.Body.String(), `<base href="/a/b/">`) {
		t.Errorf("page %s", w.Body)
	}
	if w := s.get("/a/b/slides/a.svs", auth); !strings.Contains(w.Body.String(), `"/a/b/deepzoom/a.svs.dzi?v=`) {
		t.Errorf("slide %s", w.Body)
	}
	w := s.get("/a/b/view/a.svs?token=t")
	if w.Code != 303 || w.Header().Get("Location") != "/a/b/view/a.svs" || w.Result().Cookies()[0].Path != "/a/b/" {
		t.Errorf("token page: %d %v", w.Code, w.Header())
	}
	for _, bad := range []string{"a", "/a//b", "/a/../b", "/a b", "/{x}", "/*", "//evil.example"} {
		if _, err := New(Options{Library: s.Handler.(*server).opt.Library, Reader: s.reader, BasePath: bad}); err == nil {
			t.Errorf("base path %q accepted", bad)
		}
	}
}

func TestForwarded(t *testing.T) {
	// httptest's requests come from 192.0.2.1.
	trusted := newSite(t, nil, func(o *Options) {
		o.TrustedProxies, o.Hosts, o.Token = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, []string{"slides.example.org"}, "t"
	})
	other := newSite(t, nil, func(o *Options) { o.TrustedProxies, o.Token = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, "t" })
	headers := []string{"X-Forwarded-Proto: https", "X-Forwarded-Prefix: /px/", "X-Forwarded-Host: slides.example.org", "X-Request-Id: from-proxy"}
	w := trusted.get("/view/a.svs?token=t", headers...)
	if c := w.Result().Cookies()[0]; w.Header().Get("Location") != "/px/view/a.svs" || !c.Secure || c.Path != "/px/" || w.Header().Get("X-Request-Id") != "from-proxy" {
		t.Errorf("trusted: %v", w.Header())
	}
	headers = append(headers, "Authorization: Bearer t")
	for strings.Contains(trusted.get("/slides", headers...).Body.String(), `"scanning":true`) {
		time.Sleep(time.Millisecond)
	}
	if w := trusted.get("/slides", headers...); !strings.Contains(w.Body.String(), `"/px/slides/a.svs"`) {
		t.Errorf("trusted list: %s", w.Body)
	}
	want(t, "foreign host", trusted.get("/slides", "X-Forwarded-Host: evil.example", "Authorization: Bearer t"), 403, "host_not_allowed")
	w = other.get("/view/a.svs?token=t", headers[:4]...)
	if c := w.Result().Cookies()[0]; w.Header().Get("Location") != "/view/a.svs" || c.Secure || w.Header().Get("X-Request-Id") == "from-proxy" {
		t.Errorf("not trusted: %v", w.Header())
	}
	for _, bad := range []string{"//evil.example", "/a/../b", "javascript:x", "/a?b", "/a\"b"} {
		if w := trusted.get("/view/a.svs?token=t", "X-Forwarded-Prefix: "+bad); w.Header().Get("Location") != "/view/a.svs" {
			t.Errorf("prefix %q: %v", bad, w.Header())
		}
	}
}
