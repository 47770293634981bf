package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// server is a running HTTP server of ours.
type server struct {
	cmd  *exec.Cmd
	log  *tail
	port int
	id   string // of the only slide
}

// serve starts the server with memory for decoded tiles.
func serve(ctx context.Context, argv []string, pixels int64) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{port: port, log: &tail{}}
	argv = append(append([]string{}, argv...), "--listen", fmt.Sprintf("127.0.0.1:%d", s.port), "--pixels-memory", fmt.Sprintf("%dMiB", pixels>>20))
	s.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if s.id, err = s.only(ctx); err == nil {
			return s, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			s.stop()
			return nil, fmt.Errorf("the server does not answer: %w: %s", err, s.log.last())
		}
	}
}

// only is the id of the only slide.
func (s *server) only(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/slides", s.port), nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var list struct{ Slides []struct{ ID string } }
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(body, &list); err != nil || len(list.Slides) != 1 {
		return "", fmt.Errorf("/slides: %s", strings.TrimSpace(string(body)))
	}
	return list.Slides[0].ID, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// overHTTP measures one Python client that asks for batches of patches: cold,
// with a new server for each trial, and warm.
func (r *run) overHTTP(ctx context.Context) {
	for _, task := range []string{HTTPCold, HTTPWarm} {
		x := Row{Engine: "microtome, one Python client", Task: task, Callers: 1, Unit: "patches/s"}
		if err := r.httpTrials(ctx, &x, task == HTTPWarm); err != nil {
			x.Absent, x.Trials = err.Error(), nil
		}
		r.report.Rows = append(r.report.Rows, x)
	}
}

func (r *run) httpTrials(ctx context.Context, x *Row, warm bool) error {
	p := r.o.Protocol
	q := Ask{Callers: 1, Patch: p.Patch, At: r.grid}
	trials, memory, measured := p.Trials, 2*p.ColdCache, 1
	if warm {
		trials, memory, measured = 1, 2*p.WarmCache, p.Trials
	}
	for trial := range trials {
		r.say("%s, trial %d", x.Task, trial+1)
		s, err := serve(ctx, r.o.Serve, memory)
		if err != nil {
			return err
		}
		err = r.client(ctx, s, x, q, warm, measured)
		s.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// client runs the Python client against a server that has just started.
func (r *run) client(ctx context.Context, s *server, x *Row, q Ask, warm bool, trials int) error {
	c, err := start(ctx, nil, r.o.Python, r.peers, "patches", fmt.Sprintf("%s@%d", s.id, s.port), "-")
	if err != nil {
		return err
	}
	defer c.stop()
	x.Version = c.version
	if warm {
		if _, err := c.ask(q); err != nil { // not measured: it fills the cache
			return err
		}
	}
	for range trials {
		a, err := c.ask(q)
		if err != nil {
			return err
		}
		x.Trials = append(x.Trials, float64(len(q.At))/a.Seconds)
	}
	return nil
}
