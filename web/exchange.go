package web

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"
)

// Header values that never change. They are assigned to header maps under
// canonical keys, shared by all answers and never written to.
var (
	headerNoStore    = []string{"no-store"}
	headerNosniff    = []string{"nosniff"}
	headerOne        = []string{"1"}
	headerBearer     = []string{`Bearer realm="microtome"`}
	headerAllow      = []string{"GET, HEAD, OPTIONS"}
	headerAllowPost  = []string{"POST, OPTIONS"}
	headerJSON       = []string{"application/json"}
	headerHTML       = []string{"text/html; charset=utf-8"}
	headerNoReferrer = []string{"no-referrer"}
	headerAccept     = []string{"Accept"}
)

// exchange is one request under way: the ResponseWriter that the routes write
// to, and what the log and the metrics say of it afterwards. It is one
// allocation, which also backs the header values made for this answer.
type exchange struct {
	http.ResponseWriter
	srv     *server
	status  int   // 0 until the answer's head is written
	sent    int64 // bytes of body
	route   routeID
	slideID string
	reqID   string
	prefix  string // the root as the browser sees it, without a final slash
	https   bool   // the browser's side is https
	err     error
	items   int  // of a batch
	failed  int  // of the items
	aborted bool // broken off after it had begun
	made    int8 // 1 + index of the Microtome-Tile value; 0: no pixels
	values  [6]string
	used    int
}

// set assigns a header value without an allocation of its own.
func (x *exchange) set(canonical, value string) {
	if x.used == len(x.values) {
		x.Header()[canonical] = []string{value}
		return
	}
	i := x.used
	x.used++
	x.values[i] = value
	x.Header()[canonical] = x.values[i : i+1 : i+1]
}

// addVary adds to Vary, which CORS may have set.
func (x *exchange) addVary(names []string) {
	h := x.Header()
	if have := h["Vary"]; len(have) > 0 {
		h["Vary"] = []string{have[0] + ", " + names[0]}
		return
	}
	h["Vary"] = names
}

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= 200 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	n, err := x.ResponseWriter.Write(p)
	x.sent += int64(n)
	return n, err
}

// Unwrap serves http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// body writes a complete answer; for HEAD, its head.
func (x *exchange) body(r *http.Request, status int, body []byte) error {
	x.set("Content-Length", strconv.Itoa(len(body)))
	x.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := x.Write(body)
	if err != nil {
		// The client went away: nothing more can be said to it.
		x.err = err
	}
	return nil
}

// writeJSON writes a complete JSON answer.
func (x *exchange) writeJSON(r *http.Request, status int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		x.err = err
		x.WriteHeader(http.StatusInternalServerError)
		return
	}
	x.Header()["Content-Type"] = headerJSON
	_ = x.body(r, status, b.Bytes())
}

// ServeHTTP is the whole chain: one record, the door, the routes, the log.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	x := &exchange{ResponseWriter: w, srv: s}
	s.metrics.inFlight.Add(1)
	defer s.finish(x, r, began)
	h := w.Header()
	x.reqID = s.requestID(r)
	x.set("X-Request-Id", x.reqID)
	h["X-Content-Type-Options"] = headerNosniff
	h["Cross-Origin-Resource-Policy"] = s.door.resourcePolicy
	done, err := s.door.admit(x, r)
	switch {
	case err != nil:
		s.fail(x, r, err)
	case !done:
		s.routes.ServeHTTP(x, r)
	}
}

// finish counts and logs a request, and turns a panic into a 500.
func (s *server) finish(x *exchange, r *http.Request, began time.Time) {
	p := recover()
	if p != nil {
		x.aborted = p == http.ErrAbortHandler //nolint:errorlint // net/http compares so too
	}
	if p != nil && !x.aborted {
		s.log.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("request", x.reqID),
			slog.String("route", x.route.String()), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		s.fail(x, r, errPanic)
	}
	took := time.Since(began)
	s.metrics.done(x, took)
	level := s.level(x, took)
	if s.log.Enabled(r.Context(), level) {
		s.writeLog(x, r, level, took)
	}
	if x.aborted {
		panic(p)
	}
}

// level is how much a request matters to whoever reads the log.
func (s *server) level(x *exchange, took time.Duration) slog.Level {
	switch {
	case x.status == http.StatusInternalServerError || x.aborted:
		return slog.LevelError
	case x.status == statusClientGone:
		return slog.LevelDebug
	case x.status >= 500 || took >= s.opt.Slow:
		return slog.LevelWarn
	case x.status >= 400:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// writeLog writes the line of one request. It holds no address and no token:
// the route stands for the path, and a keyed hash for the slide.
func (s *server) writeLog(x *exchange, r *http.Request, level slog.Level, took time.Duration) {
	attrs := make([]slog.Attr, 0, 11)
	attrs = append(attrs,
		slog.String("request", x.reqID), slog.String("method", methodName(r.Method)),
		slog.String("route", x.route.String()), slog.Int("status", x.status),
		slog.Int64("bytes", x.sent), slog.Duration("took", took))
	if x.items > 0 {
		attrs = append(attrs, slog.Int("items", x.items), slog.Int("failed", x.failed))
	}
	if x.slideID != "" {
		attrs = append(attrs, slog.String("slide", s.logName(x.slideID)))
	}
	if x.err != nil {
		text := x.err.Error()
		if !s.opt.LogNames && namesFile(x.err, x.slideID) {
			text = explain(x.err, x.slideID).message
		}
		attrs = append(attrs, slog.String("error", text))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// logName is a slide's id for the log: in clear, or a hash that only tells one
// slide from another while this process lives.
func (s *server) logName(id string) string {
	if s.opt.LogNames {
		return id
	}
	mac := hmac.New(sha256.New, s.logKey[:])
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil)[:6])
}

func methodName(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost:
		return m
	}
	return "other"
}

// requestID continues a trusted proxy's id, or makes one.
func (s *server) requestID(r *http.Request) string {
	if in := r.Header["X-Request-Id"]; len(in) == 1 && s.door.trusts(r) && plainID(in[0]) {
		return in[0]
	}
	var b [32]byte
	out := append(b[:0], s.began...)
	return string(strconv.AppendUint(out, s.serial.Add(1), 36))
}

func plainID(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 64
}
