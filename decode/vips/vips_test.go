package vips

import (
	"bytes"
	"context"
	"errors"
	"image"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/microtome/microtome"
)

func picture(w, h, channels int) *Request {
	r := &Request{Format: WebP, Quality: 80, Width: w, Height: h, Channels: channels}
	for i := range w * h * channels {
		r.Pix = append(r.Pix, byte(i/channels%w*2+i%channels*60))
	}
	return r
}

func TestRequestsAndAnswersTravel(t *testing.T) {
	var b bytes.Buffer
	r := picture(5, 3, 3)
	r.ICC, r.Lossless = []byte("profile"), true
	if err := WriteRequest(&b, r); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRequest(&b)
	if err != nil || !bytes.Equal(got.Pix, r.Pix) || string(got.ICC) != "profile" || !got.Lossless || got.Width != 5 || got.Height != 3 || got.Quality != 80 {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := ReadRequest(&b); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	_ = WriteAnswer(&b, []byte("RIFF"), nil)
	_ = WriteAnswer(&b, nil, errors.New("no"))
	if a, err := ReadAnswer(&b); string(a) != "RIFF" || err != nil {
		t.Errorf("%q, %v", a, err)
	}
	var told refusal
	if _, err := ReadAnswer(&b); !errors.As(err, &told) {
		t.Errorf("%v", err)
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	for _, b := range []string{"\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x05\x00\x00\x00abcde", "\x20\x00\x00\x00short",
		"\x14\x00\x00\x00\x01\x50\x00\x03\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if _, err := ReadRequest(bytes.NewReader([]byte(b))); !errors.Is(err, ErrMessage) {
			t.Errorf("%q: %v", b, err)
		}
	}
	if err := WriteRequest(io.Discard, &Request{Width: 2, Height: 2, Channels: 3, Pix: make([]byte, 11)}); !errors.Is(err, ErrMessage) {
		t.Error(err)
	}
}

func TestTIFFHoldsThePixels(t *testing.T) {
	for _, channels := range []int{1, 3, 4} {
		r := picture(7, 5, channels)
		r.ICC = []byte("odd")
		m, err := tiff.Decode(bytes.NewReader(TIFF(r)))
		if err != nil {
			t.Fatal(channels, err)
		}
		red, _, _, _ := m.At(3, 2).RGBA()
		if m.Bounds() != image.Rect(0, 0, 7, 5) || channels != 4 && byte(red>>8) != r.Pix[(2*7+3)*channels] {
			t.Errorf("%d channels: %v, red %d", channels, m.Bounds(), red>>8)
		}
	}
}

// buildWorker builds the child, or skips where libvips isn't installed.
func buildWorker(t *testing.T) string {
	t.Helper()
	if err := exec.Command("pkg-config", "--exists", "vips").Run(); err != nil {
		t.Skip("libvips-dev is not installed: ", err)
	}
	path := filepath.Join(t.TempDir(), Worker)
	out, err := exec.Command("go", "build", "-tags", "vips", "-o", path, "../../cmd/"+Worker).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func TestChildEncodes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	c := New(Options{Path: buildWorker(t)})
	defer c.Close()
	ctx := context.Background()
	for _, channels := range []int{1, 3, 4} {
		r := picture(60, 40, channels)
		b, err := c.EncodeWebP(ctx, r.Pix, 60, 40, channels, 100, nil)
		if err != nil {
			t.Fatal(channels, err)
		}
		m, err := webp.Decode(bytes.NewReader(b))
		if err != nil || m.Bounds() != image.Rect(0, 0, 60, 40) {
			t.Fatal(channels, err)
		}
		if n, ok := m.(*image.NRGBA); ok && n.Pix[n.PixOffset(9, 7)] != r.Pix[(7*60+9)*channels] {
			t.Errorf("%d channels: lossless isn't", channels)
		}
	}
	icc := bytes.Repeat([]byte("not a profile "), 20)
	if _, err := c.EncodeWebP(ctx, picture(20, 20, 3).Pix, 20, 20, 3, 80, icc); err != nil {
		t.Log("a bad profile is refused:", err)
	}
	var told refusal
	if _, err := c.Encode(ctx, &Request{Format: 99, Width: 1, Height: 1, Channels: 1, Pix: []byte{0}}); !errors.As(err, &told) {
		t.Errorf("unknown format: %v", err)
	}
	t.Run("killed", func(t *testing.T) {
		c.mu.Lock()
		k := c.idle[0]
		c.mu.Unlock()
		_ = k.cmd.Process.Kill()
		if _, err := c.EncodeWebP(ctx, picture(20, 20, 3).Pix, 20, 20, 3, 80, nil); err != nil {
			t.Errorf("after the child's death: %v", err)
		}
	})
	t.Run("many", func(t *testing.T) {
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if _, err := c.EncodeWebP(ctx, picture(64, 64, 3).Pix, 64, 64, 3, 80, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := len(c.idle); n > 2 {
			t.Errorf("%d children, at most 2", n)
		}
	})
}

// script makes a stand-in for the child.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "child")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestChildThatHangsOrDies(t *testing.T) {
	r := picture(4, 4, 3)
	c := New(Options{Path: script(t, "exec sleep 60"), Timeout: 50 * time.Millisecond})
	if _, err := c.Encode(context.Background(), r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hangs: %v", err)
	}
	c = New(Options{Path: script(t, "exit 3")})
	if _, err := c.Encode(context.Background(), r); err == nil {
		t.Error("dies: no error")
	}
	c = New(Options{Path: "/nowhere"})
	if _, err := c.Encode(context.Background(), r); err == nil {
		t.Error("absent: no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Encode(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("caller left: %v", err)
	}
	if _, err := c.EncodeWebP(context.Background(), nil, 16383, 16383, 3, 80, nil); !errors.Is(err, microtome.ErrLimit) {
		t.Errorf("more than a message holds: %v", err)
	}
	if _, err := c.EncodeWebP(context.Background(), nil, 20000, 1, 3, 80, nil); !errors.Is(err, microtome.ErrLimit) {
		t.Errorf("too large: %v", err)
	}
}

func TestChildDoesNotSeeOurSettings(t *testing.T) {
	t.Setenv("MICROTOME_TOKEN", "secret")
	t.Setenv("TMPDIR", "/some/where")
	env := strings.Join(childEnv(), "\n")
	if strings.Contains(env, "secret") {
		t.Error("the child's environment holds the token")
	}
	if !strings.Contains(env, "TMPDIR=/some/where") || !strings.Contains(env, "VIPS_BLOCK_UNTRUSTED=1") {
		t.Errorf("the child's environment lacks what it needs: %s", env)
	}
}
