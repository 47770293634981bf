package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckListen(t *testing.T) {
	for _, c := range []struct {
		listen, token string
		insecure      bool
		want          string // a part of the error
		loopback      bool
	}{
		{listen: "127.0.0.1:8080", loopback: true},
		{listen: "127.9.9.9:0", loopback: true},
		{listen: "[::1]:8080", loopback: true},
		{listen: "[::ffff:127.0.0.1]:8080", loopback: true},
		{listen: "localhost:http", loopback: true},
		{listen: "unix:/x/y", loopback: true},
		{listen: ":8080", want: "--insecure"},
		{listen: "0.0.0.0:8080", want: "--insecure"},
		{listen: "[::]:8080", want: "--insecure"},
		{listen: "192.0.2.1:8080", want: "--insecure"},
		{listen: ":8080", token: "t"},
		{listen: ":8080", insecure: true},
		{listen: "8080", want: "not an address"},
		{listen: "", want: "not an address"},
		{listen: "127.0.0.1:nope", want: "not a port"},
		{listen: "127.0.0.1:99999", want: "not a port"},
	} {
		cfg := &config{Listen: c.listen, Token: c.token, Insecure: c.insecure}
		err := checkListen(context.Background(), cfg)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.listen, err, c.want)
		}
		if err == nil && cfg.loopback != c.loopback {
			t.Errorf("%q: loopback %v", c.listen, cfg.loopback)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "s")
	first, err := listen(ctx, "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listen(ctx, "unix:"+path); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("a socket in use: %v", err)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false) // as if the server had died
	first.Close()
	second, err := listen(ctx, "unix:"+path)
	if err != nil {
		t.Fatalf("a socket that a dead server left: %v", err)
	}
	second.Close()
	if err := os.WriteFile(path, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(ctx, "unix:"+path); err == nil {
		t.Error("a file was taken for a socket")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file in the way: %q, %v", b, err)
	}
}

func TestGalleryURL(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8080} }
	for _, c := range []struct {
		addr        net.Addr
		base, token string
		want        string
	}{
		{tcp("127.0.0.1"), "/", "", "http://127.0.0.1:8080/"},
		{tcp("::1"), "/a b", "", "http://[::1]:8080/a%20b/"},
		{tcp("0.0.0.0"), "/a/", "x&y", "http://localhost:8080/a/?token=x%26y"},
		{&net.UnixAddr{Name: "/s"}, "/", "", ""},
	} {
		if got := galleryURL(&config{BasePath: c.base, Token: c.token}, c.addr); got != c.want {
			t.Errorf("%v: %q, want %q", c.addr, got, c.want)
		}
	}
}

func TestShownURL(t *testing.T) {
	const page = "http://127.0.0.1:8080/?token=s3cret"
	if got := shownURL(page, true); got != page {
		t.Errorf("on a terminal: %s", got)
	}
	if got := shownURL(page, false); strings.Contains(got, "s3cret") || !strings.HasPrefix(got, "http://127.0.0.1:8080/ ") {
		t.Errorf("elsewhere: %s", got)
	}
	if got := shownURL("http://127.0.0.1:8080/", false); got != "http://127.0.0.1:8080/" {
		t.Errorf("without a token: %s", got)
	}
}
