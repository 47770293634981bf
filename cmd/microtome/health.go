package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// healthTimeout is how long a server may take to say that it is well.
const healthTimeout = 3 * time.Second

// newHealthCmd asks a running server whether it answers: containers have no
// other program to ask with.
func newHealthCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "health [URL]",
		Short: "Ask a running server whether it answers",
		Long: `Ask the server at URL, or the one that the environment and its MICROTOME_CONFIG
describe, for /healthz. The exit code is 0 when it answers 200, else 1.`,
		Hidden: true,
		Args:   cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := probeFor(args, os.Environ)
			if err != nil {
				return &usageError{err}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			return p.ask(ctx)
		},
	}
}

// probe is where to ask.
type probe struct {
	url    string
	socket string // the Unix socket to ask through, "" for TCP
}

func probeFor(args []string, environ func() []string) (probe, error) {
	if len(args) == 1 {
		u, err := url.Parse(args[0])
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return probe{}, fmt.Errorf("%q is not an address such as http://127.0.0.1:8080", args[0])
		}
		return probe{url: u.JoinPath("healthz").String()}, nil
	}
	settings := pflag.NewFlagSet("health", pflag.ContinueOnError)
	addSettings(settings)
	c, _, err := loadConfig(settings, nil, nil, environ)
	if err != nil {
		return probe{}, err
	}
	return probeOf(c)
}

// probeOf is the way to a server with the settings c on this machine.
func probeOf(c *config) (probe, error) {
	u := &url.URL{Scheme: "http", Host: "localhost", Path: c.BasePath}
	if socket, ok := strings.CutPrefix(c.Listen, unixPrefix); ok {
		return probe{url: u.JoinPath("healthz").String(), socket: socket}, nil
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return probe{}, fmt.Errorf("listen: %w", err)
	}
	if port == "0" {
		return probe{}, fmt.Errorf("listen: port 0 is another at every start: give the URL")
	}
	if host == "" {
		host = "127.0.0.1"
	} else if a, err := netip.ParseAddr(host); err == nil && a.IsUnspecified() {
		host = map[bool]string{true: "127.0.0.1", false: "::1"}[a.Is4()]
	}
	u.Host = net.JoinHostPort(host, port)
	return probe{url: u.JoinPath("healthz").String()}, nil
}

// ask returns nil when the server answers 200. It takes no proxy, and follows
// no redirect: what answers must be the server itself.
func (p probe) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	var d net.Dialer
	t := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if p.socket != "" {
			network, address = "unix", p.socket
		}
		return d.DialContext(ctx, network, address)
	}}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", p.url, resp.Status)
	}
	return nil
}
