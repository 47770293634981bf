package main

import (
	"io"
	"log/slog"
)

// newLogger writes to w what the settings ask for.
func newLogger(w io.Writer, c *config) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
