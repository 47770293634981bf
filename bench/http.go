package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
)

// server is a running HTTP server of ours.
type server struct {
	port int
	id   string // of the only slide
	stop func()
}

// serve starts the server with memory for decoded tiles.
func serve(ctx context.Context, argv []string, pixels int64) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{port: port}
	argv = with(argv, "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--pixels-memory", fmt.Sprintf("%dMiB", pixels>>20))
	if s.stop, err = up(ctx, exec.CommandContext(ctx, argv[0], argv[1:]...), port, "/healthz"); err != nil {
		return nil, err
	}
	if s.id, err = s.only(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
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

// overHTTP measures one Python client that asks for batches of patches. Before
// each cold trial the same number of patches elsewhere drives all others out of
// the cache.
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
	cache := p.ColdCache
	if warm {
		cache = p.WarmCache
	}
	s, err := serve(ctx, r.o.Serve, 2*cache) // half of it is for patches
	if err != nil {
		return err
	}
	defer s.stop()
	c, err := start(ctx, nil, r.o.Python, r.peers, "patches", fmt.Sprintf("%s@%d", s.id, s.port), "-")
	if err != nil {
		return err
	}
	defer c.stop()
	x.Version = c.version
	grid := Ask{Callers: 1, Patch: p.Patch, At: r.grid}
	other := grid
	if !warm {
		if other.At, err = elsewhere(p, r.grid, r.o.Slide); err != nil {
			return err
		}
	}
	check := grid
	check.Sum = true
	a, err := c.ask(check)
	if err != nil {
		return err
	}
	x.Pixels = differing(r.sums, strings.Fields(strings.Trim(a.Sum, "[]")))
	for trial := range p.Trials {
		r.say("%s, trial %d", x.Task, trial+1)
		if !warm || trial == 0 {
			if _, err := c.ask(other); err != nil {
				return err
			}
		}
		if a, err = c.ask(grid); err != nil {
			return err
		}
		x.Trials = append(x.Trials, float64(len(grid.At))/a.Seconds)
	}
	return nil
}

// elsewhere is a grid beside the first, whose tiles would fill the cache of cold
// trials.
func elsewhere(p Protocol, grid []At, f Facts) ([]At, error) {
	side := int64(p.Grid * p.Patch)
	if 3*side*side < p.ColdCache {
		return nil, fmt.Errorf("a grid of %d pixels a side does not fill a cache of %d MiB", side, p.ColdCache>>20)
	}
	shift := At{X: side + int64(f.Tile[0])}
	if grid[len(grid)-1].X+int64(p.Patch)+shift.X > f.Width {
		shift.X = -shift.X
	}
	if grid[0].X+shift.X < 0 {
		return nil, fmt.Errorf("no room on the slide for a second grid")
	}
	other := make([]At, len(grid))
	for i, at := range grid {
		other[i] = At{at.X + shift.X, at.Y}
	}
	return other, nil
}
