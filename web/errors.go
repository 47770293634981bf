package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/microtome/microtome"
)

// statusClientGone is what the log and metrics say of a client that left before
// its answer; nobody receives it.
const statusClientGone = 499

// webError is a refusal that web itself decides on.
type webError struct {
	status  int
	code    string
	message string
}

func (e *webError) Error() string { return e.message }

// The refusals that have no kind in the root.
var (
	errNoRoute  = &webError{http.StatusNotFound, "not_found", "no such address"}
	errMethod   = &webError{http.StatusMethodNotAllowed, "method_not_allowed", "only GET and HEAD are answered here"}
	errPostOnly = &webError{http.StatusMethodNotAllowed, "method_not_allowed", "only POST is answered here"}
	errToken    = &webError{http.StatusUnauthorized, "token_needed",
		"this server needs its token: Authorization: Bearer … or ?token=…"}
	errHost = &webError{http.StatusForbidden, "host_not_allowed",
		"this server does not answer to that host name; allow it in the configuration"}
	errCrossSite = &webError{http.StatusForbidden, "cross_site", "a page of another site may not ask this with the cookie; use the token"}
	errURL       = &webError{http.StatusRequestURITooLong, "url_too_long", "the address is too long"}
	errPanic     = &webError{http.StatusInternalServerError, "internal", "internal error"}
)

// failure is an error as the client sees it.
type failure struct {
	status  int
	code    string
	message string
}

// givenUp is what a client that waits is told when something else was cancelled.
var givenUp = failure{http.StatusServiceUnavailable, "busy", "the work was given up; ask again"}

// kinds maps the root's kinds to statuses. tell says whether the error's own
// text, which names tags, tiles and parameters, goes to the client.
var kinds = [...]struct {
	kind   error
	status int
	code   string
	tell   bool
}{
	{microtome.ErrMalformed, http.StatusBadRequest, "malformed", true},
	{microtome.ErrForbidden, http.StatusForbidden, "forbidden", true},
	{microtome.ErrNotFound, http.StatusNotFound, "not_found", true},
	{microtome.ErrLimit, http.StatusRequestEntityTooLarge, "over_limit", true},
	{microtome.ErrUnsupported, http.StatusUnsupportedMediaType, "unsupported", true},
	{microtome.ErrUnanswerable, http.StatusUnprocessableEntity, "unanswerable", true},
	{microtome.ErrCorrupt, http.StatusUnprocessableEntity, "corrupt", true},
	{microtome.ErrBusy, http.StatusServiceUnavailable, "busy", false},
	{microtome.ErrSource, http.StatusBadGateway, "source_failed", false},
}

// explain is the one place where an error becomes a status. id is the slide's,
// "" when none is known; no answer ever holds a file's path.
func explain(err error, id string) failure {
	if err == nil {
		return failure{status: http.StatusOK}
	}
	var own *webError
	if errors.As(err, &own) {
		return failure{own.status, own.code, own.message}
	}
	if errors.Is(err, context.Canceled) {
		return failure{statusClientGone, "client_gone", "the client left"}
	}
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			message := k.kind.Error()
			if k.tell && !namesFile(err, id) {
				message = err.Error()
			}
			return failure{k.status, k.code, message}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return failure{http.StatusServiceUnavailable, "busy", "took too long"}
	}
	return failure{http.StatusInternalServerError, "internal", "internal error"}
}

// namesFile says whether an error's text may hold a path or the slide's name.
func namesFile(err error, id string) bool {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	var sysErr *os.SyscallError
	var errno syscall.Errno
	if errors.As(err, &pathErr) || errors.As(err, &linkErr) || errors.As(err, &sysErr) || errors.As(err, &errno) {
		return true
	}
	text := err.Error()
	if id != "" && strings.Contains(text, path.Base(id)) {
		return true
	}
	return strings.HasPrefix(text, "/") || strings.Contains(text, " /") || strings.Contains(text, "\"/")
}

// fail answers with an error, unless an answer has begun or the client is gone.
func (s *server) fail(x *exchange, r *http.Request, err error) {
	f := explain(err, x.slideID)
	if f.status == statusClientGone && r.Context().Err() == nil {
		f = givenUp
	}
	x.err = err
	if x.status != 0 {
		return
	}
	if f.status == statusClientGone {
		x.status = statusClientGone
		return
	}
	h := x.Header()
	for _, k := range [...]string{"Etag", "Content-Encoding", "Content-Length", "Microtome-Tile", "Microtome-Scale"} {
		delete(h, k)
	}
	h["Cache-Control"] = headerNoStore
	switch f.status {
	case http.StatusServiceUnavailable:
		h["Retry-After"] = headerOne
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = headerBearer
		if wantsPage(x, r) {
			s.tokenPage(x)
			return
		}
	case http.StatusMethodNotAllowed:
		if errors.Is(err, errPostOnly) {
			h["Allow"] = headerAllowPost
			break
		}
		h["Allow"] = headerAllow
	}
	x.writeJSON(r, f.status, struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{f.code, f.message})
}
