// Package web serves slides over HTTP: routes, status codes, cache headers,
// the door (hosts, token, CORS), metrics and the request log.
package web

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/tiles"
)

// Library is what web needs of a library.Library.
type Library interface {
	Acquire(ctx context.Context, id string) (*library.Handle, error)
	List(ctx context.Context, q library.Query) (library.Page, error)
	Stats() library.Stats
}

// Reader is what web needs of a tiles.Reader.
type Reader interface {
	Stored(ctx context.Context, s microtome.Slide, level, plane, col, row int) (tiles.Answer, error)
	StoredPixels(ctx context.Context, s microtome.Slide, level, plane, col, row int, o tiles.PixelOptions) (tiles.Answer, error)
	View(ctx context.Context, s microtome.Slide, v tiles.View, o tiles.PixelOptions) (tiles.Answer, error)
	Region(ctx context.Context, s microtome.Slide, q tiles.Region, o tiles.PixelOptions) (tiles.Answer, error)
	Associated(ctx context.Context, s microtome.Slide, name string, o tiles.PixelOptions) (tiles.Answer, error)
	Thumbnail(ctx context.Context, s microtome.Slide, size int, o tiles.PixelOptions) (tiles.Answer, error)
	Patches(ctx context.Context, items []tiles.Patch, o tiles.PatchOptions) ([]tiles.PatchResult, int, error)
	EncodePixels(ctx context.Context, px microtome.Pixels, f microtome.Format, quality int) ([]byte, error)
	Progress(s microtome.Slide) (done, total int64, building bool)
	Stats() tiles.Stats
}

// Options configure the handler. Library and Reader are needed; the zero value
// of the rest serves without a token, privately cached, with label, macro and
// telling properties closed.
type Options struct {
	Library Library
	Reader  Reader
	// Version is the build, for the metrics. EncoderVersion is part of every
	// ETag: it must change when an encoder or a filter gives other bytes, and
	// be the same on all replicas; empty means Version.
	Version, EncoderVersion string
	// Decoder says what decodes JPEG, and Exact whether its pixels are
	// libjpeg-turbo's, for the metrics and the status page.
	Decoder string
	Exact   bool
	// Decodes, when set, is asked for the decoder's counts.
	Decodes func() microtome.DecodeStats

	// Token, when set, is asked of every request but /healthz, /readyz and
	// preflights: as a bearer, as ?token=, or as the cookie that ?token= on a
	// page sets.
	Token string
	// Loopback says that only loopback addresses are listened on: then Host
	// may only be localhost, a loopback address or one of Hosts. Otherwise it
	// may be any address, localhost or one of Hosts ("*" for any name).
	Loopback bool
	Hosts    []string
	// BasePath is the path that everything lies below; "" and "/" are the root.
	BasePath string
	// TrustedProxies are the peers whose X-Forwarded-Proto, -Host, -Prefix and
	// X-Request-Id are believed.
	TrustedProxies []netip.Prefix
	// CORS lists the origins that scripts may read from ("*" for all).
	CORS []string
	// PublicCache lets shared caches keep answers. It has no effect with a Token.
	PublicCache bool

	// OpenAssociated opens label, macro and other associated images beside the
	// thumbnail. OpenProperties opens properties that may name a patient.
	OpenAssociated, OpenProperties bool

	// MaxPixels bounds one answer; 0 means 64 Mi.
	MaxPixels int64
	// BatchBytes bounds the answers to all batches of patches that are under
	// way; 0 means 512 MiB.
	BatchBytes int64
	// MaxURL bounds the request target in bytes; 0 means 8 Ki.
	MaxURL int

	// Log gets failures and slow requests at Info and above, every request at
	// Debug; nil means slog.Default(). Slow is what counts as slow; 0: 2 s.
	Log  *slog.Logger
	Slow time.Duration
	// LogNames writes slide ids in clear; otherwise a keyed hash stands there.
	LogNames bool
	// Ready, when set, says whether /readyz is 200 (nil) or 503.
	Ready func() error
}

const (
	defaultMaxPixels = 64 << 20
	defaultBatch     = 512 << 20
	defaultMaxURL    = 8 << 10
	defaultSlow      = 2 * time.Second
)

// server is the handler. It is immutable but for its counters and caches.
type server struct {
	opt     Options
	log     *slog.Logger
	routes  http.Handler
	metrics *metrics
	states  *slideStates
	room    *tiles.Budget // for the answers to batches, until they are written
	door    door
	pages   pages
	logKey  [16]byte
	began   string // prefix of this process's request ids
	started time.Time
	serial  atomic.Uint64
	control [2][]string // Cache-Control without and with a current ?v=
}

// New builds the handler of all routes.
func New(o Options) (http.Handler, error) {
	if o.Library == nil || o.Reader == nil {
		return nil, fmt.Errorf("web: Library and Reader are needed")
	}
	if o.MaxPixels <= 0 {
		o.MaxPixels = defaultMaxPixels
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = defaultBatch
	}
	if o.MaxURL <= 0 {
		o.MaxURL = defaultMaxURL
	}
	if o.Slow <= 0 {
		o.Slow = defaultSlow
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.EncoderVersion == "" {
		o.EncoderVersion = o.Version
	}
	s := &server{opt: o, log: o.Log, started: time.Now(), room: tiles.NewBudget(o.BatchBytes, maxBatchWaiting)}
	var err error
	if s.door, err = newDoor(o); err != nil {
		return nil, err
	}
	if s.pages, err = newPages(); err != nil {
		return nil, err
	}
	if s.states, err = newSlideStates(o.EncoderVersion); err != nil {
		return nil, err
	}
	_, _ = rand.Read(s.logKey[:]) // never fails (crypto/rand)
	var id [4]byte
	_, _ = rand.Read(id[:])
	s.began = hex.EncodeToString(id[:]) + "-"
	s.metrics = newMetrics(o)
	who := "private"
	if o.PublicCache && o.Token == "" {
		who = "public"
	}
	s.control = [2][]string{{who + ", no-cache"}, {who + ", max-age=31536000, immutable"}}
	s.routes = s.router()
	return s, nil
}

// handler answers one route. What it returns becomes the answer, unless it has
// written one.
type handler func(x *exchange, r *http.Request) error

// router maps paths to routes. Ids hold slashes, so a route with one is a
// wildcard here, and its own grammar reads the rest from the right.
func (s *server) router() http.Handler {
	m := chi.NewRouter()
	for _, p := range []struct {
		pattern string
		h       handler
	}{
		{"/", s.gallery},
		{"/view/*", s.viewPage},
		{"/assets/*", s.asset},
		{"/licenses.txt", s.asset},
		{"/favicon.ico", s.favicon},
		{"/deepzoom/*", s.deepZoom},
		{"/slides", s.list},
		{"/slides/*", s.slide},
		{"/patches", s.patches},
		{"/healthz", s.healthz},
		{"/readyz", s.readyz},
		{"/metrics", s.metricsPage},
		{"/status", s.statusPage},
		{"/status.json", s.statusData},
		{"/openapi.json", s.openAPI},
	} {
		m.Handle(s.door.base+p.pattern, s.route(p.h))
	}
	if s.door.base != "" {
		m.Handle(s.door.base, s.route(s.toGallery))
	}
	m.NotFound(s.route(func(x *exchange, r *http.Request) error { return errNoRoute }))
	return m
}

func (s *server) route(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		if err := h(x, r); err != nil {
			s.fail(x, r, err)
		}
	}
}

// ServerTimeouts sets on srv what protects it from slow and greedy clients
// without cutting off large answers on slow lines.
func ServerTimeouts(srv *http.Server) {
	srv.ReadHeaderTimeout = 10 * time.Second
	srv.ReadTimeout = 60 * time.Second
	srv.WriteTimeout = 5 * time.Minute
	srv.IdleTimeout = 2 * time.Minute
	srv.MaxHeaderBytes = 32 << 10
}

//go:embed openapi.json
var openAPIDocument []byte

// healthz says that the process answers.
func (s *server) healthz(x *exchange, r *http.Request) error {
	x.route = routeHealth
	x.Header()["Cache-Control"] = headerNoStore
	x.writeJSON(r, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// readyz says whether requests should be sent here.
func (s *server) readyz(x *exchange, r *http.Request) error {
	x.route = routeReady
	if s.opt.Ready != nil {
		if err := s.opt.Ready(); err != nil {
			x.err = err
			return &webError{http.StatusServiceUnavailable, "not_ready", "not ready"}
		}
	}
	x.Header()["Cache-Control"] = headerNoStore
	x.writeJSON(r, http.StatusOK, map[string]string{"status": "ready"})
	return nil
}

// metricsPage answers /metrics.
func (s *server) metricsPage(x *exchange, r *http.Request) error {
	x.route = routeMetrics
	x.Header()["Cache-Control"] = headerNoStore
	s.metrics.page.ServeHTTP(x, r)
	return nil
}

// openAPI answers /openapi.json.
func (s *server) openAPI(x *exchange, r *http.Request) error {
	x.route = routeOpenAPI
	x.Header()["Content-Type"] = headerJSON
	return s.writeTagged(x, r, openAPIDocument)
}
