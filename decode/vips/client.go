package vips

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/microtome/microtome"
)

// Worker is the file name of the child's program.
const Worker = "microtome-vips-worker"

// Find returns the child's program: beside this one, or in PATH.
func Find() (string, error) {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), Worker)
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	path, err := exec.LookPath(Worker)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside this program nor in PATH: %w", Worker, err)
	}
	return path, nil
}

// Options configure a Client.
type Options struct {
	Path     string        // the child's program
	Children int           // pictures encoded at once, each by its own child; 0: 2
	Timeout  time.Duration // of one picture; a child that takes longer is killed; 0: 20 s
}

// Client encodes pictures by child processes, started when first needed and
// again when they die.
type Client struct {
	o     Options
	slots chan struct{}

	mu     sync.Mutex
	idle   []*child
	closed bool
}

// New makes a client. It starts nothing.
func New(o Options) *Client {
	if o.Children <= 0 {
		o.Children = 2
	}
	if o.Timeout <= 0 {
		o.Timeout = 20 * time.Second
	}
	return &Client{o: o, slots: make(chan struct{}, o.Children)}
}

// EncodeWebP makes a WebP picture of rows without padding. Quality 100 is
// lossless.
func (c *Client) EncodeWebP(ctx context.Context, pix []byte, w, h, channels, quality int, icc []byte) ([]byte, error) {
	const webpSide = 16383 // of the format itself
	if w > webpSide || h > webpSide || int64(w)*int64(h)*int64(channels)+int64(len(icc)) > maxMessage-headSize {
		return nil, fmt.Errorf("WebP of %dx%d: %w", w, h, microtome.ErrLimit)
	}
	return c.Encode(ctx, &Request{Format: WebP, Quality: quality, Lossless: quality == 100,
		Width: w, Height: h, Channels: channels, ICC: icc, Pix: pix})
}

// Encode has a child encode a picture. A child that died since its last picture
// is replaced once.
func (c *Client) Encode(ctx context.Context, r *Request) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // select would toss a coin
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		k, used, err := c.take()
		if err != nil {
			return nil, err
		}
		b, err := k.ask(ctx, r, c.o.Timeout)
		var told refusal
		if err == nil || errors.As(err, &told) {
			c.give(k)
			return b, err
		}
		k.kill()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !used {
			return nil, fmt.Errorf("vips child: %w", err)
		}
	}
}

// take returns an idle child, or a new one.
func (c *Client) take() (k *child, used bool, err error) {
	if k, err = c.takeIdle(); k != nil || err != nil {
		return k, true, err
	}
	k, err = start(c.o.Path)
	return k, false, err
}

// takeIdle returns an idle child, nil when there is none.
func (c *Client) takeIdle() (*child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("vips client is closed")
	}
	n := len(c.idle)
	if n == 0 {
		return nil, nil
	}
	k := c.idle[n-1]
	c.idle = c.idle[:n-1]
	return k, nil
}

func (c *Client) give(k *child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		k.kill()
		return
	}
	c.idle = append(c.idle, k)
}

// Close ends the idle children; those at work end with their picture.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, k := range c.idle {
		k.kill()
	}
	c.idle = nil
	return nil
}

// child is one process. It ends by itself when its input closes.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(path string) (*child, error) {
	cmd := exec.Command(path)
	// libvips must not open its less-tested loaders, nor threads of its own:
	// the client bounds the children instead.
	cmd.Env = childEnv()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("vips child: %w", err)
	}
	return &child{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

// childEnv is what the child sees of the environment: where libraries lie, and
// none of the server's settings, its token among them.
func childEnv() []string {
	env := []string{"VIPS_BLOCK_UNTRUSTED=1", "VIPS_CONCURRENCY=1"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "TMPDIR", "HOME", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// ask sends a request and waits for its answer. When ctx or the time ends first
// the child is killed: its answer would be taken for the next one's.
func (k *child) ask(ctx context.Context, r *Request, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = k.cmd.Process.Kill() })
	defer stop()
	if err := WriteRequest(k.in, r); err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	b, err := ReadAnswer(k.out)
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	return b, nil
}

func (k *child) kill() {
	_ = k.in.Close()
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}
