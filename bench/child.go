package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// An engine under test is a child process that answers one line of JSON with
// one line of JSON: so each has its own processors, and a crash is its own.

// Ask is what a child is asked.
type Ask struct {
	// Cold empties the cache first; otherwise it is what it was, of WarmCache
	// bytes.
	Cold    bool  `json:"cold"`
	Cache   int64 `json:"cache"`
	Callers int   `json:"callers"`
	Patch   int   `json:"patch"`
	// Sum asks for the checksum of the pixels, which takes time.
	Sum bool `json:"sum"`
	At  []At `json:"at"`
}

// Answer is what a child answers.
type Answer struct {
	Seconds float64 `json:"seconds"`
	Sum     string  `json:"sum,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// Hello is a child's first line.
type Hello struct {
	Version string `json:"version"`
	Error   string `json:"error,omitempty"`
}

// patience bounds one answer.
const patience = 5 * time.Minute

// child is a running engine.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  *tail
	version string
}

// start runs a command as a child; its version comes with its first line.
func start(ctx context.Context, env []string, argv ...string) (*child, error) {
	c := &child{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), stderr: &tail{}}
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stderr = c.stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReaderSize(out, 1<<16)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	var hello Hello
	if err := c.read(&hello); err != nil {
		c.stop()
		return nil, err
	}
	if hello.Error != "" {
		c.stop()
		return nil, errors.New(hello.Error)
	}
	c.version = hello.Version
	return c, nil
}

// ask sends a question and waits for its answer.
func (c *child) ask(q Ask) (Answer, error) {
	var a Answer
	if err := json.NewEncoder(c.in).Encode(q); err != nil {
		return a, c.failure(err)
	}
	if err := c.read(&a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

func (c *child) read(v any) error {
	late := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return c.failure(err)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("%w in %.80q", err, line)
	}
	return nil
}

// failure ends a child that can't be spoken to, and adds what it said last.
func (c *child) failure(err error) error {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // all that it said has come then
	if text := c.stderr.last(); text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

func (c *child) stop() {
	_ = c.in.Close() // it ends at the end of its input
	done := make(chan struct{})
	go func() { _ = c.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		_ = c.cmd.Process.Kill()
		<-done
	}
}

// tail keeps the last of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if n := len(t.text) - 4096; n > 0 {
		t.text = t.text[n:]
	}
	return len(p), nil
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return lines[len(lines)-1]
}
