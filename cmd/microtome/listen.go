package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

const unixPrefix = "unix:"

// checkListen refuses an open door: an address that others can reach needs a
// token, or --insecure. It sets c.loopback.
func checkListen(ctx context.Context, c *config) error {
	if strings.HasPrefix(c.Listen, unixPrefix) {
		c.loopback = true // the file's permissions are the door
		return nil
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %q is not an address such as 127.0.0.1:8080 or unix:/path", c.Listen)
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return fmt.Errorf("listen: %q is not a port", port)
	}
	if c.loopback, err = isLoopback(ctx, host); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if !c.loopback && c.Token == "" && !c.Insecure {
		return fmt.Errorf("listen: %s can be reached from other machines: give a --token, or --insecure to let everybody in", c.Listen)
	}
	return nil
}

// isLoopback says whether every address of host is this machine's own.
func isLoopback(ctx context.Context, host string) (bool, error) {
	if host == "" {
		return false, nil // all interfaces
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false, err
	}
	for _, a := range addrs {
		if !a.Unmap().IsLoopback() {
			return false, nil
		}
	}
	return len(addrs) > 0, nil
}

// listen opens the address.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		if err := removeStaleSocket(ctx, path); err != nil {
			return nil, err
		}
		return lc.Listen(ctx, "unix", path)
	}
	l, err := lc.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is taken: another program listens there, perhaps another Microtome; choose another port with --listen, or port 0 for any free one", address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s is not allowed: ports below 1024 need rights; choose one above with --listen", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s is not an address of this machine: check --listen", address)
	}
	return l, err
}

// removeStaleSocket removes a socket that a dead server left, and nothing else.
func removeStaleSocket(ctx context.Context, path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	d := net.Dialer{Timeout: time.Second}
	if c, err := d.DialContext(ctx, "unix", path); err == nil {
		c.Close()
		return fmt.Errorf("%s is taken: another program listens there", path)
	}
	return os.Remove(path)
}
