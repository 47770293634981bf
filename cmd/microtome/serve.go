package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/web"
	"github.com/microtome/microtome/web/wire"
)

const serveLong = `Serve the slides below folders, or single slide files, to viewers and samplers.

Each argument is a folder or a file, with a name before it or not: NAME=PATH.
The ids of a named folder's slides, and of all when there are several folders,
begin with the name. Without an argument and without slides in the
configuration, a synthetic slide is made and served.

Every flag below is also a key in a YAML file given by --config (or, without it,
by MICROTOME_CONFIG), and a variable in the environment: --base-path is base-path there and MICROTOME_BASE_PATH here.
Flags win over the environment, it over files, later files over earlier ones.
In a file, slides are listed under "slides": as PATH, NAME=PATH, or a map of
name, path and links (symlinked folders below it that may be followed although
they lead out of it). In the environment, lists are separated by commas.

At a stop signal /readyz turns to 503, requests under way are finished, and the
exit code is 0. A second signal ends the program at once. SIGUSR1 asks a GPU on
again that is off because its worker died too often.`

func newServeCmd() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "serve [[NAME=]PATH ...]",
		Short: "Serve slides over HTTP",
		Long:  serveLong,
		Example: `  microtome serve --open
  microtome serve ~/slides
  microtome serve trial=/data/trial archive=/mnt/archive --listen :8080 --token "$TOKEN"
  microtome serve --config /etc/microtome.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, strange, err := loadConfig(cmd.Flags(), files, args, os.Environ)
			if err == nil {
				err = checkListen(cmd.Context(), c)
			}
			if err != nil {
				return &usageError{err}
			}
			log := newLogger(cmd.ErrOrStderr(), c)
			for _, name := range strange {
				log.Warn("unknown variable in the environment", "name", name)
			}
			return serve(cmd.Context(), c, log, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringArrayVar(&files, "config", nil, "read settings from this YAML `file`; may be given again")
	addSettings(cmd.Flags())
	return cmd
}

// serve runs the server until ctx ends, then finishes what is under way.
func serve(ctx context.Context, c *config, log *slog.Logger, out io.Writer) error {
	limitMemory(c)
	// The port and the device first: nothing is made or opened for a server that cannot start.
	l, err := listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	defer l.Close()
	e, err := newEngine(ctx, c, true)
	if err != nil {
		return err
	}
	defer closeLogged(log, "engine", e.close)
	defer resetAtSignal(log, e.devices)()
	if len(c.Slides) == 0 {
		demo, err := demoSlide(ctx, out)
		if err != nil {
			return fmt.Errorf("demo slide: %w", err)
		}
		c.Slides = []library.Root{{Path: demo}}
	}
	lib, err := library.New(c.Slides, library.Options{MaxOpen: c.MaxOpen, CheckEvery: c.CheckEvery, RescanEvery: c.RescanEvery})
	if errors.Is(err, microtome.ErrMalformed) { // the roots as they were named
		return usagef("%s", strings.TrimPrefix(err.Error(), microtome.ErrMalformed.Error()+": "))
	}
	if err != nil {
		return err
	}
	defer closeLogged(log, "library", lib.Close)
	d := &door{}
	h, err := newHandler(c, log, lib, e, d)
	if err != nil {
		return err
	}
	announce(ctx, c, log, out, l.Addr(), e)
	return d.serve(ctx, c, log, l, h)
}

func closeLogged(log *slog.Logger, what string, closeIt func() error) {
	if err := closeIt(); err != nil {
		log.Error("closing", "what", what, "error", err)
	}
}

func newHandler(c *config, log *slog.Logger, lib *library.Library, e *engine, d *door) (http.Handler, error) {
	proxies, err := c.proxies()
	if err != nil {
		return nil, err
	}
	return web.New(web.Options{
		Library: lib, Reader: e.reader,
		Version: buildVersion(), EncoderVersion: encoderVersion(e, c), Decoder: e.cpu.Name(), Exact: e.cpu.Exact(),
		Decodes: e.cpu.Stats,
		Token:   c.Token, Loopback: c.loopback, Hosts: c.Hosts, BasePath: c.BasePath,
		TrustedProxies: proxies, CORS: c.CORS, PublicCache: c.PublicCache,
		OpenAssociated: c.ShowAssociated, OpenProperties: c.ShowProperties,
		BatchBytes: int64(c.BatchMemory), MaxPixels: c.MaxPixels, Log: log, Slow: c.SlowRequest, LogNames: c.LogNames,
		Ready: d.ready,
	})
}

// encoderVersion names all beside the slide that decides an answer's bytes: two
// replicas of one build and configuration give equal ETags, and an upgrade
// that renders differently never answers 304 for the old picture.
func encoderVersion(e *engine, c *config) string {
	return fmt.Sprintf("%s %s q%d bg%v open%t", buildVersion(), e.cpu.Name(), c.Quality, c.Background, c.ShowProperties)
}

// door says whether new requests are welcome.
type door struct{ closing atomic.Bool }

var errClosing = errors.New("the server is stopping")

func (d *door) ready() error {
	if d.closing.Load() {
		return errClosing
	}
	return nil
}

// serve answers on l until ctx ends and the requests under way are done, or
// the time for that is over.
func (d *door) serve(ctx context.Context, c *config, log *slog.Logger, l net.Listener, h http.Handler) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler:     h,
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	web.ServerTimeouts(srv)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(wire.Join(l)) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	d.closing.Store(true)
	log.Info("stopping", "delay", c.ShutdownDelay, "timeout", c.ShutdownTimeout)
	time.Sleep(c.ShutdownDelay)
	drain, stop := context.WithTimeout(requests, c.ShutdownTimeout)
	defer stop()
	if err := srv.Shutdown(drain); err != nil {
		cancel()
		log.Warn("requests were cut off", "after", c.ShutdownTimeout)
		return srv.Close()
	}
	log.Info("stopped")
	return nil
}
