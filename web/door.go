package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/microtome/microtome/web/route"
)

// door decides who comes in: the length of the address, the host name, the
// origin, the method and the token, in this order.
type door struct {
	base           string // "" or "/a/b"
	maxURL         int
	loopback       bool
	hosts          []string // lower case
	anyHost        bool
	proxies        []netip.Prefix
	origins        []string
	anyOrigin      bool
	resourcePolicy []string

	token       bool
	tokenSum    [sha256.Size]byte
	cookieName  string
	cookieValue string
	cookieSum   [sha256.Size]byte
}

func newDoor(o Options) (door, error) {
	d := door{
		maxURL: o.MaxURL, loopback: o.Loopback, proxies: o.TrustedProxies,
		origins: o.CORS, resourcePolicy: []string{"same-origin"},
	}
	d.base = strings.TrimSuffix(o.BasePath, "/")
	if d.base != "" && !plainPath(d.base) {
		return d, fmt.Errorf("web: base path %q: want /name with letters, digits, '-', '.', '_' and '~'", o.BasePath)
	}
	for _, h := range o.Hosts {
		d.anyHost = d.anyHost || h == "*"
		d.hosts = append(d.hosts, strings.ToLower(strings.TrimSuffix(h, ".")))
	}
	d.anyOrigin = slices.Contains(o.CORS, "*")
	if len(o.CORS) > 0 {
		d.resourcePolicy = []string{"cross-origin"}
	}
	if o.Token != "" {
		d.token = true
		d.tokenSum = sha256.Sum256([]byte(o.Token))
		mac := hmac.New(sha256.New, []byte(o.Token))
		mac.Write([]byte("microtome session"))
		sum := hex.EncodeToString(mac.Sum(nil))
		// Cookies do not tell ports apart: two servers of one host must not
		// overwrite each other's.
		d.cookieName, d.cookieValue = "microtome-"+sum[:8], sum[8:]
		d.cookieSum = sha256.Sum256([]byte(d.cookieValue))
	}
	return d, nil
}

// plainPath accepts "/a/b" of unreserved characters, without dot segments.
func plainPath(p string) bool {
	if len(p) > 256 || p[0] != '/' {
		return false
	}
	for seg := range strings.SplitSeq(p[1:], "/") {
		if seg == "" || seg == "." || seg == ".." || route.EscapeID(seg) != seg {
			return false
		}
	}
	return true
}

// admit lets a request in (done false), answers it (done true), or refuses it.
// CORS headers come first: they stand on refusals too.
func (d *door) admit(x *exchange, r *http.Request) (done bool, err error) {
	x.prefix = d.base
	x.https = r.TLS != nil
	if len(d.origins) > 0 {
		d.cors(x.Header(), r.Header)
	}
	if len(r.RequestURI) > d.maxURL {
		return false, errURL
	}
	if !d.allows(r.Host) || !d.forwarded(x, r) {
		return false, errHost
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		if !d.takesPost(r) {
			return false, errMethod
		}
	case http.MethodOptions:
		x.Header()["Allow"] = headerAllow
		if d.takesPost(r) {
			x.Header()["Allow"] = headerAllowPost
		}
		x.WriteHeader(http.StatusNoContent)
		return true, nil
	default:
		if d.takesPost(r) {
			return false, errPostOnly
		}
		return false, errMethod
	}
	if d.token {
		return d.checkToken(x, r)
	}
	return false, nil
}

// takesPost says whether POST has a meaning at a path.
func (d *door) takesPost(r *http.Request) bool { return r.URL.Path == d.base+"/patches" }

// trusts says whether the peer is a proxy whose word counts.
func (d *door) trusts(r *http.Request) bool {
	if len(d.proxies) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := peer.Addr().Unmap()
	for _, p := range d.proxies {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// forwarded takes a trusted proxy's view of the browser's side. The host that
// it passed on must be an allowed one as well.
func (d *door) forwarded(x *exchange, r *http.Request) bool {
	if !d.trusts(r) {
		return true
	}
	switch firstValue(r.Header, "X-Forwarded-Proto") {
	case "https":
		x.https = true
	case "http":
		x.https = false
	}
	if p := strings.TrimSuffix(firstValue(r.Header, "X-Forwarded-Prefix"), "/"); p != "" && plainPath(p) {
		x.prefix = p + d.base
	}
	host := firstValue(r.Header, "X-Forwarded-Host")
	return host == "" || d.allows(host)
}

// firstValue is the first element of a list header: the client's side.
func firstValue(h http.Header, canonical string) string {
	v := h[canonical]
	if len(v) == 0 {
		return ""
	}
	first, _, _ := strings.Cut(v[0], ",")
	return strings.TrimSpace(first)
}

// allows checks a Host header. A page of another site whose name was made to
// resolve to this machine (DNS rebinding) still sends its own name here.
func (d *door) allows(hostport string) bool {
	if hostport == "" { // HTTP/1.0; no browser
		return true
	}
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	} else if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" {
		return true
	}
	if slices.Contains(d.hosts, host) {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return !d.loopback || ip.IsLoopback()
	}
	return d.anyHost
}

// The CORS answers.
var (
	corsAny     = []string{"*"}
	corsVary    = []string{"Origin"}
	corsMethods = []string{"GET, HEAD, POST, OPTIONS"}
	corsAge     = []string{"86400"}
	corsHeaders = []string{"Authorization, Content-Type, If-None-Match, X-Request-Id"}
	corsExpose  = []string{"ETag, Content-Length, Microtome-Tile, Microtome-Scale, Microtome-Shape, Microtome-Failed, Microtome-Failures, X-Request-Id, Retry-After"}
)

func (d *door) cors(out, in http.Header) {
	if !d.anyOrigin {
		out["Vary"] = corsVary
	}
	origin := in["Origin"]
	if len(origin) != 1 {
		return
	}
	switch {
	case d.anyOrigin:
		out["Access-Control-Allow-Origin"] = corsAny
	case slices.Contains(d.origins, origin[0]):
		out["Access-Control-Allow-Origin"] = origin
	default:
		return
	}
	out["Access-Control-Expose-Headers"] = corsExpose
	if len(in["Access-Control-Request-Method"]) > 0 {
		out["Access-Control-Allow-Methods"] = corsMethods
		out["Access-Control-Allow-Headers"] = corsHeaders
		out["Access-Control-Max-Age"] = corsAge
	}
}

// checkToken lets in who shows the token or its cookie. On a page, a token in
// the address is turned into the cookie, so that it does not stay in view.
func (d *door) checkToken(x *exchange, r *http.Request) (done bool, err error) {
	path := strings.TrimPrefix(r.URL.Path, d.base)
	if path == "/healthz" || path == "/readyz" {
		return false, nil
	}
	if auth := r.Header["Authorization"]; len(auth) == 1 {
		scheme, given, _ := strings.Cut(auth[0], " ")
		if strings.EqualFold(scheme, "Bearer") && same(strings.TrimSpace(given), d.tokenSum) {
			return false, nil
		}
	}
	if strings.Contains(r.URL.RawQuery, "token=") {
		if given, rest := cutToken(r.URL.RawQuery); same(given, d.tokenSum) {
			if !isPage(path) {
				return false, nil
			}
			d.enter(x, r, rest)
			return true, nil
		}
	}
	for _, line := range r.Header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if name == d.cookieName && same(value, d.cookieSum) {
				if r.Method == http.MethodPost && !ownSite(r.Header) {
					return false, errCrossSite
				}
				return false, nil
			}
		}
	}
	return false, errToken
}

// ownSite says that a request with a cookie was sent by a page of ours, or by no
// page: other sites' pages send the cookie too.
func ownSite(h http.Header) bool {
	switch h.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		return h.Get("Origin") == ""
	}
	return false
}

// same compares in a time that tells nothing of how much was right.
func same(given string, want [sha256.Size]byte) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}

// cutToken takes token= out of a raw query.
func cutToken(raw string) (token, rest string) {
	var keep []string
	for pair := range strings.SplitSeq(raw, "&") {
		if !strings.HasPrefix(pair, "token=") {
			keep = append(keep, pair)
			continue
		}
		_ = route.EachParam(pair, func(_, value string) error {
			token = value
			return nil
		})
	}
	return token, strings.Join(keep, "&")
}

// isPage says whether a path (below the base) is a page for people.
func isPage(path string) bool {
	return path == "" || path == "/" || path == "/status" || strings.HasPrefix(path, "/view/")
}

// wantsPage says whether a refusal should be readable: a browser on a page.
func wantsPage(x *exchange, r *http.Request) bool {
	return isPage(strings.TrimPrefix(r.URL.Path, x.srv.door.base)) && strings.Contains(firstValue(r.Header, "Accept"), "text/html")
}

// enter sets the cookie and sends the browser to the same page without token.
func (d *door) enter(x *exchange, r *http.Request, query string) {
	http.SetCookie(x, &http.Cookie{
		Name: d.cookieName, Value: d.cookieValue, Path: x.prefix + "/",
		HttpOnly: true, Secure: x.https, SameSite: http.SameSiteLaxMode,
	})
	to := x.prefix + strings.TrimPrefix(r.URL.EscapedPath(), d.base)
	if query != "" {
		to += "?" + query
	}
	h := x.Header()
	h["Location"] = []string{to}
	h["Cache-Control"] = headerNoStore
	h["Referrer-Policy"] = headerNoReferrer
	x.WriteHeader(http.StatusSeeOther)
}
