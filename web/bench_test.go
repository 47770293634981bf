package web

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/microtome/microtome/tiles"
)

// nullWriter takes an answer as net/http does, without a connection.
type nullWriter struct{ h http.Header }

func (w *nullWriter) Header() http.Header         { return w.h }
func (w *nullWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *nullWriter) WriteHeader(int)             {}

// BenchmarkStoredTile is all that this package adds to a stored Deep Zoom tile:
// request id, door with a token, routing, ETag, headers, metrics and the log at
// its default level.
func BenchmarkStoredTile(b *testing.B) {
	s := newSite(b, nil, func(o *Options) {
		o.Token, o.CORS = "secret", []string{"https://viewer.example"}
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	})
	s.reader.quiet, s.reader.body = true, make([]byte, 10800)
	s.reader.change = func(a *tiles.Answer) { a.Made, a.Engine = tiles.Stored, "none" }
	for name, header := range map[string]string{"full": "", "notmodified": s.get("/deepzoom/a.svs_files/10/1_1.jpg?v=x&token=secret").Header().Get("Etag")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				u, _ := url.ParseRequestURI("/deepzoom/a.svs_files/10/1_1.jpg?v=x")
				r := &http.Request{Method: "GET", URL: u, Host: "127.0.0.1:8080", RequestURI: u.String(), RemoteAddr: "127.0.0.1:1",
					Header: http.Header{"Authorization": {"Bearer secret"}, "Accept": {"*/*"}, "User-Agent": {"x"}}}
				if header != "" {
					r.Header["If-None-Match"] = []string{header}
				}
				for pb.Next() {
					s.ServeHTTP(&nullWriter{h: make(http.Header, 12)}, r)
				}
			})
		})
	}
}
