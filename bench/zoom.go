package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The load of the Deep Zoom tasks.
const (
	zoomCallers = 8
	zoomRounds  = 3
	zoomTiles   = 4000 // of the full level, for the static limit
	// zoomPatience is how long an answer may take beyond the end of a round.
	zoomPatience = 20 * time.Second
)

// zoomServer is a server of Deep Zoom tiles.
type zoomServer struct {
	name, version string
	port          int
	// path is the address of a tile k levels below the full one.
	path   func(k, col, row int) string
	levels []int // the k it answers
	pages  int   // how many tiles of its grid there are; 0: all
	stop   func()
	absent string
}

// overZoom measures Deep Zoom tiles over HTTP: the full level, and the one of
// half its size, which an SVS doesn't store and a TIFF pyramid does.
func (r *run) overZoom(ctx context.Context) {
	servers := r.zoomServers(ctx)
	defer func() {
		for _, s := range servers {
			if s.stop != nil {
				s.stop()
			}
		}
	}()
	for k, task := range []string{ZoomStored, ZoomMade} {
		rows := make([]*Row, len(servers))
		for i, s := range servers {
			if s.absent == "" && !slices.Contains(s.levels, k) {
				continue
			}
			rows[i] = &Row{Engine: s.name, Version: s.version, Task: task, Callers: zoomCallers, Unit: "tiles/s", Absent: s.absent}
		}
		for round := range zoomRounds {
			for i, s := range servers {
				if rows[i] == nil || rows[i].Absent != "" {
					continue
				}
				r.say("%s, round %d: %s", task, round+1, s.name)
				rate, err := r.zoomRound(ctx, s, k, round)
				if err != nil {
					rows[i].Absent, rows[i].Trials = err.Error(), nil
					continue
				}
				rows[i].Trials = append(rows[i].Trials, rate)
			}
		}
		for _, x := range rows {
			if x != nil {
				r.report.Rows = append(r.report.Rows, *x)
			}
		}
	}
}

// zoomRound asks a server for random whole tiles of a level.
func (r *run) zoomRound(ctx context.Context, s *zoomServer, k, round int) (float64, error) {
	cols, rows := r.zoomGrid(k)
	if cols < 1 || rows < 1 {
		return 0, errTooSmall
	}
	rnd := rand.New(rand.NewPCG(r.o.Protocol.Seed, uint64(100*k+round)))
	paths := make([]string, 1<<16)
	for i := range paths {
		n := rnd.IntN(cols * rows)
		if s.pages > 0 {
			n = r.zoomPages[rnd.IntN(s.pages)]
		}
		paths[i] = fmt.Sprintf("http://127.0.0.1:%d%s", s.port, s.path(k, n%cols, n/cols))
	}
	return load(ctx, paths, zoomCallers, r.o.ZoomSeconds)
}

var errTooSmall = errors.New("the slide has no whole tile")

// zoomGrid is how many whole tiles a level has, k below the full one.
func (r *run) zoomGrid(k int) (cols, rows int) {
	half := func(n int64) int64 { return (n + 1<<k - 1) >> k }
	return int(half(r.o.Slide.Width)) / r.o.Slide.Tile[0], int(half(r.o.Slide.Height)) / r.o.Slide.Tile[1]
}

// zoomLevel is the Deep Zoom number of a level.
func (r *run) zoomLevel(k int) int {
	return bits.Len64(uint64(max(r.o.Slide.Width, r.o.Slide.Height)-1)) - k
}

// load asks for the addresses from so many connections until the time is over
// and returns the answers a second. One that is not 200, or is empty, is an error.
func load(ctx context.Context, addresses []string, connections int, d time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, d+zoomPatience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var next, done atomic.Int64
	var failed atomic.Pointer[error]
	start := time.Now()
	end := start.Add(d)
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				address := addresses[int(next.Add(1)-1)%len(addresses)]
				if err := fetchOne(ctx, client, address); err != nil {
					failed.CompareAndSwap(nil, &err)
					cancel()
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / time.Since(start).Seconds(), ctx.Err()
}

func fetchOne(ctx context.Context, client *http.Client, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || n == 0 {
		return fmt.Errorf("%s: %s, %d bytes", req.URL.Path, res.Status, n)
	}
	return nil
}
