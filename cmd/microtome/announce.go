package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
)

// announce says on the terminal where the gallery is, and in the log how the
// server runs. The log gets neither the token nor a path: a path may be a
// slide's name.
func announce(ctx context.Context, c *config, log *slog.Logger, out io.Writer, addr net.Addr, e *engine) {
	log.Info("serving", "address", addr.String(), "version", buildVersion(), "decoder", e.cpu.Name(),
		"roots", len(c.Slides), "token", c.Token != "", "base_path", c.BasePath)
	if c.Device == "auto" {
		log.Info("device chosen", "asked", "auto", "device", "cpu", "why", "no GPU decoder is built in yet")
	}
	page := galleryURL(c, addr)
	if page == "" {
		fmt.Fprintf(out, "Microtome listens on %s\n", c.Listen)
		return
	}
	fmt.Fprintf(out, "Microtome is ready: %s\n", page)
	if c.Open {
		if err := openBrowser(ctx, page); err != nil {
			fmt.Fprintf(out, "Open that address in a browser (%v).\n", err)
		}
	}
}

// galleryURL is the address to open, with the token; "" for a Unix socket.
func galleryURL(c *config, addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return ""
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "localhost"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, fmt.Sprint(tcp.Port)), Path: strings.TrimSuffix(c.BasePath, "/") + "/"}
	if c.Token != "" {
		u.RawQuery = url.Values{"token": {c.Token}}.Encode()
	}
	return u.String()
}
