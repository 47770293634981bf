package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"

	"golang.org/x/term"
)

// announce says on the terminal where the gallery is, and in the log how the
// server runs. The log gets neither the token nor a path: a path may be a
// slide's name.
func announce(ctx context.Context, c *config, log *slog.Logger, out io.Writer, addr net.Addr, e *engine) {
	log.Info("serving", "address", addr.String(), "version", buildVersion(), "decoder", e.cpu.Name(),
		"roots", len(c.Slides), "token", c.Token != "", "base_path", c.BasePath)
	logDevices(c, log, e)
	page := galleryURL(c, addr)
	if page == "" {
		fmt.Fprintf(out, "Microtome listens on %s\n", c.Listen)
		return
	}
	fmt.Fprintf(out, "Microtome is ready: %s\n", shownURL(page, onTerminal(out)))
	if c.Open {
		if err := openBrowser(ctx, page); err != nil {
			fmt.Fprintf(out, "Open that address in a browser (%v).\n", err)
		}
	}
}

// logDevices says once what decodes batches, and what auto chose.
func logDevices(c *config, log *slog.Logger, e *engine) {
	if c.Device == "auto" && len(e.devices) == 0 {
		log.Info("device chosen", "asked", "auto", "device", "cpu", "why", e.chosen)
	}
	for _, d := range e.devices {
		st := d.Stats()
		log.Info("device chosen", "asked", c.Device, "device", st.Name, "decoder", st.Decoder, "memory", st.ArenaBytes, "why", e.chosen)
	}
}

// shownURL is the address as it is printed. What is no terminal may be a journal
// that others read: the token is left to whoever set it.
func shownURL(page string, terminal bool) string {
	address, token, _ := strings.Cut(page, "?")
	if token == "" || terminal {
		return page
	}
	return address + " (add ?token=… with the token)"
}

// onTerminal says whether somebody watches what is written.
func onTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
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
