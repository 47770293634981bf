package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestProbeFor(t *testing.T) {
	file := configFile(t, "listen: 127.0.0.1:7000\nbase-path: /wsi/\n")
	for _, c := range []struct {
		arg         string
		environ     []string
		url, socket string
		want        string // a part of the error
	}{
		{url: "http://127.0.0.1:8080/healthz"},
		{arg: "http://a.example:1", url: "http://a.example:1/healthz"},
		{arg: "https://a.example/wsi/", url: "https://a.example/wsi/healthz"},
		{arg: "a.example:1", want: "not an address"},
		{arg: "ftp://a.example", want: "not an address"},
		{environ: []string{"MICROTOME_LISTEN=0.0.0.0:81", "MICROTOME_BASE_PATH=/b"}, url: "http://127.0.0.1:81/b/healthz"},
		{environ: []string{"MICROTOME_LISTEN=:81"}, url: "http://127.0.0.1:81/healthz"},
		{environ: []string{"MICROTOME_LISTEN=[::]:81"}, url: "http://[::1]:81/healthz"},
		{environ: []string{"MICROTOME_LISTEN=192.0.2.1:81"}, url: "http://192.0.2.1:81/healthz"},
		{environ: []string{"MICROTOME_LISTEN=unix:/run/m.sock"}, url: "http://localhost/healthz", socket: "/run/m.sock"},
		{environ: []string{"MICROTOME_CONFIG=" + file}, url: "http://127.0.0.1:7000/wsi/healthz"},
		{environ: []string{"MICROTOME_LISTEN=127.0.0.1:0"}, want: "give the URL"},
		{environ: []string{"MICROTOME_LISTEN=8080"}, want: "listen"},
		{environ: []string{"MICROTOME_QUALITY=0"}, want: "quality"},
	} {
		var args []string
		if c.arg != "" {
			args = []string{c.arg}
		}
		p, err := probeFor(args, func() []string { return c.environ })
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s%q: %v, want %q", c.arg, c.environ, err, c.want)
			}
			continue
		}
		if err != nil || p.url != c.url || p.socket != c.socket {
			t.Errorf("%s%q: %+v, %v", c.arg, c.environ, p, err)
		}
	}
}

func TestProbeAsks(t *testing.T) {
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/b/healthz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Location", "/b/healthz")
		w.WriteHeader(status)
	}))
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	for _, status = range []int{200, 503, 302, 404} {
		err := probe{url: srv.URL + "/b/healthz"}.ask(context.Background())
		if (err == nil) != (status == 200) {
			t.Errorf("%d: %v", status, err)
		}
	}
	srv.Close()
	if err := (probe{url: srv.URL}).ask(context.Background()); err == nil {
		t.Error("a server that is gone was found well")
	}
}

// A server that takes the question and never answers is not well.
func TestProbeGivesUp(t *testing.T) {
	stop := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-stop }))
	defer srv.Close()
	defer close(stop)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := (probe{url: srv.URL}).ask(ctx); err == nil {
		t.Error("no answer was taken for a good one")
	}
}
