package web

import (
	_ "embed"
	"net/http"
)

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
