package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is a buffer that a running command writes and a test reads.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// server is a `microtome serve` that runs inside the test.
type server struct {
	url      string // as it was printed
	out, log output
	client   *http.Client
	cancel   context.CancelFunc
	code     chan int
}

var readyLine = regexp.MustCompile(`Microtome is ready: (\S+)`)

// startServer runs serve on a free port and waits for its address.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{client: &http.Client{Jar: jar}, cancel: cancel, code: make(chan int, 1)}
	args = append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)
	go func() { s.code <- run(ctx, args, &s.out, &s.log) }()
	t.Cleanup(cancel)
	for range 600 {
		if m := readyLine.FindStringSubmatch(s.out.String()); m != nil {
			s.url = m[1]
			return s
		}
		select {
		case code := <-s.code:
			t.Fatalf("ended with %d\n%s", code, s.log.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("no address after 30 s\n%s", s.log.String())
	return nil
}

// stop ends the server as a signal does, and checks that it ends well.
func (s *server) stop(t *testing.T) {
	t.Helper()
	s.cancel()
	select {
	case code := <-s.code:
		if code != exitOK {
			t.Errorf("ended with %d\n%s", code, s.log.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatal("does not end")
	}
}

// get asks for a path below the printed address and checks the status.
func (s *server) get(t *testing.T, path string, status int) []byte {
	t.Helper()
	base, _, _ := strings.Cut(s.url, "?")
	resp, err := s.client.Get(base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != status {
		t.Errorf("%s: %s, want %d\n%s", path, resp.Status, status, body)
	}
	return body
}

// listed are the ids of /slides, once the first reading of the folders is done.
func (s *server) listed(t *testing.T) []string {
	t.Helper()
	for range 100 {
		var page struct {
			Scanning bool
			Slides   []struct{ ID string }
		}
		if err := json.Unmarshal(s.get(t, "slides?recursive=1", 200), &page); err != nil {
			t.Fatal(err)
		}
		if !page.Scanning {
			ids := []string{}
			for _, e := range page.Slides {
				ids = append(ids, e.ID)
			}
			return ids
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("scanning does not end")
	return nil
}

func TestServeEndToEnd(t *testing.T) {
	dir := t.TempDir()
	writeSlide(t, filepath.Join(dir, "sub", "a b+c%20d.svs"), 1)
	if err := os.WriteFile(filepath.Join(dir, "broken.svs"), []byte("not a slide"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, "study="+dir, "--base-path", "/wsi/", "--log-level", "debug")
	if ids := s.listed(t); fmt.Sprint(ids) != "[study/broken.svs study/sub/a b+c%20d.svs]" && fmt.Sprint(ids) != "[study/sub/a b+c%20d.svs study/broken.svs]" {
		t.Errorf("listed %q", ids)
	}
	id := "study/sub/a%20b+c%2520d.svs"
	s.get(t, "", 200)
	s.get(t, "healthz", 200)
	s.get(t, "readyz", 200)
	s.get(t, "metrics", 200)
	s.get(t, "view/"+id, 200)
	s.get(t, "slides/"+id, 200)
	s.get(t, "slides/study%2Fsub%2Fa%20b+c%2520d.svs", 200)
	if dzi := s.get(t, "deepzoom/"+id+".dzi", 200); !bytes.Contains(dzi, []byte("TileSize")) {
		t.Errorf("dzi: %s", dzi)
	}
	s.get(t, "deepzoom/"+id+"_files/8/0_0.jpeg", 200)
	s.get(t, "slides/"+id+"/levels/0/tiles/0/0", 200)
	if raw := s.get(t, "slides/"+id+"/region?x=0&y=0&width=10&height=7&format=raw", 200); len(raw) != 10*7*3 {
		t.Errorf("raw region of %d bytes", len(raw))
	}
	s.get(t, "slides/study/none.svs", 404)
	s.get(t, "slides/study/sub/..%2F..%2Fetc%2Fpasswd", 404)
	s.get(t, "slides/study/broken.svs", 415)
	s.get(t, "slides/"+id, 200)
	s.stop(t)
	if log := s.log.String(); strings.Contains(log, "b+c") || strings.Contains(log, "broken") || !strings.Contains(log, "stopped") {
		t.Errorf("the log names a slide, or does not say the end:\n%s", log)
	}
}

func TestServeFollowsReplacedFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.svs")
	writeSlide(t, file, 1)
	s := startServer(t, file, "--check-every", "10ms", "--log-names", "--log-level", "debug")
	const region = "slides/a.svs/region?x=0&y=0&width=64&height=64&format=raw"
	first := s.get(t, region, 200)
	writeSlide(t, file+".part", 2)
	if err := os.Rename(file+".part", file); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if bytes.Equal(s.get(t, region, 200), first) {
		t.Error("the old slide's pixels")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	s.get(t, region, 404)
	s.stop(t)
	if !strings.Contains(s.log.String(), "a.svs") {
		t.Errorf("--log-names does not name the slide:\n%s", s.log.String())
	}
}

func TestServeToken(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("MICROTOME_TOKEN", "s3cret&")
	s := startServer(t, dir)
	if strings.Contains(s.url, "token") {
		t.Errorf("printed to what is no terminal: %s", s.url)
	}
	s.get(t, "slides", 401)
	s.get(t, "slides?token=wrong", 401)
	s.get(t, "slides?token=s3cret%26", 200)
	s.get(t, "?token=s3cret%26", 200)
	s.get(t, "slides", 200) // by the cookie that the page set
	s.get(t, "healthz", 200)
	s.stop(t)
	if strings.Contains(s.log.String(), "s3cret") {
		t.Errorf("the log holds the token:\n%s", s.log.String())
	}
}

func TestServePortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out, log output
	code := run(context.Background(), []string{"serve", "--listen", l.Addr().String(), t.TempDir()}, &out, &log)
	if code != exitFailed || !strings.Contains(log.String(), "is taken") || !strings.Contains(log.String(), "--listen") {
		t.Errorf("code %d: %s", code, log.String())
	}
}

// At a stop signal: /readyz says 503 while the server still answers, then the
// requests under way are finished.
func TestServeDrains(t *testing.T) {
	s := startServer(t, t.TempDir(), "--shutdown-delay", "1s", "--log-format", "json")
	s.get(t, "readyz", 200)
	s.cancel()
	unready := false
	for range 40 {
		resp, err := http.Get(s.url + "readyz")
		if err != nil {
			break // closed
		}
		resp.Body.Close()
		unready = unready || resp.StatusCode == http.StatusServiceUnavailable
		time.Sleep(20 * time.Millisecond)
	}
	if !unready {
		t.Error("/readyz never said 503")
	}
	s.stop(t)
	for line := range strings.Lines(s.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a log line that is not JSON: %s", line)
		}
	}
}

// The door finishes what is under way, and cuts it off when its time is over.
func TestDoorShutdown(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout time.Duration
		whole   bool
	}{{"finished", 10 * time.Second, true}, {"cut off", 50 * time.Millisecond, false}} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			entered := make(chan struct{})
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(entered)
				select {
				case <-r.Context().Done():
				case <-time.After(500 * time.Millisecond):
					io.WriteString(w, "whole")
				}
			})
			done := make(chan error, 1)
			var log output
			cfg := &config{ShutdownTimeout: c.timeout}
			go func() { done <- (&door{}).serve(ctx, cfg, newLogger(&log, cfg), l, h) }()
			go func() { <-entered; stop() }()
			body := ""
			if resp, err := http.Get("http://" + l.Addr().String()); err == nil {
				b, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				body = string(b)
			}
			if (body == "whole") != c.whole {
				t.Errorf("got %q", body)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if cut := strings.Contains(log.String(), "cut off"); cut == c.whole {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}
