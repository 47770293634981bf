package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// seen is what callers of one kind saw.
type seen struct {
	mu       sync.Mutex
	times    map[string][]time.Duration // by how the answer was made
	failures map[string]int
	items    int64
	longest  time.Duration // between two answers to one caller
}

func newSeen() *seen {
	return &seen{times: map[string][]time.Duration{}, failures: map[string]int{}}
}

func (s *seen) note(kind string, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failures[err.Error()]++
		return
	}
	s.times[kind] = append(s.times[kind], took)
}

// wait notes how long a caller waited for an answer, and how much was in it.
func (s *seen) wait(d time.Duration, items int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = max(s.longest, d)
	s.items += int64(items)
}

// print tells all of it, and returns the p99 of a kind.
func (s *seen) print(name, kind string) (p99 time.Duration) {
	for k, times := range s.times {
		slices.Sort(times)
		at := func(p float64) time.Duration { return times[int(p*float64(len(times)-1))] }
		fmt.Printf("%-10s %-10s %8d answers  p50 %9.2f ms  p99 %9.2f ms  longest %9.2f ms\n", name, k, len(times),
			ms(at(0.5)), ms(at(0.99)), ms(at(1)))
		if k == kind {
			p99 = at(0.99)
		}
	}
	for text, n := range s.failures {
		fmt.Printf("%-10s failed %d times: %s\n", name, n, text)
	}
	return p99
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// lab is viewers beside samplers, with the server's memory watched.
func lab(ctx context.Context, c *client, s settings) error {
	all, err := c.slides(ctx, s.ids)
	if err != nil {
		return err
	}
	before, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	run, stop := context.WithTimeout(ctx, s.duration)
	defer stop()
	viewers, samplers := newSeen(), newSeen()
	var callers sync.WaitGroup
	for i := range s.viewers {
		callers.Go(func() {
			v := viewer{c: c, seen: viewers, think: s.think, rnd: rand.New(rand.NewPCG(s.seed, uint64(i))), slides: all}
			v.run(run)
		})
	}
	for i := range s.samplers {
		callers.Go(func() {
			sample(run, c, samplers, all, s.batch, rand.New(rand.NewPCG(s.seed, uint64(1000+i))))
		})
	}
	memory := watch(run, c, s.duration)
	callers.Wait()
	after, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	return verdict(s, viewers, samplers, memory, before, after)
}

// verdict prints the run and says which bounds it broke.
func verdict(s settings, viewers, samplers *seen, memory []float64, before, after map[string]float64) error {
	p99 := viewers.print("viewers", "stored")
	samplers.print("samplers", "")
	fmt.Printf("samplers   %d patches, %.0f/s, longest wait %.2f s\n", samplers.items, float64(samplers.items)/s.duration.Seconds(), samplers.longest.Seconds())
	third := len(memory) / 3
	ratio := 0.0
	if third > 0 {
		middle, last := slices.Max(memory[third:2*third]), slices.Max(memory[2*third:])
		ratio = last / middle
		fmt.Printf("memory     %.0f MiB at first, %.0f in the middle third, %.0f in the last: %.3f\n", memory[0], middle, last, ratio)
	}
	fmt.Printf("decodes    %.0f\n", after["microtome_tiles_decodes_total"]-before["microtome_tiles_decodes_total"])
	var broken []error
	if len(viewers.failures) > 0 {
		broken = append(broken, errors.New("viewers saw errors"))
	}
	if p99 == 0 || p99 > s.p99 {
		broken = append(broken, fmt.Errorf("p99 of stored tiles is %v, bound %v", p99, s.p99))
	}
	if s.samplers > 0 && (samplers.longest > s.starved || samplers.items == 0) {
		broken = append(broken, fmt.Errorf("a sampler waited %v, bound %v", samplers.longest, s.starved))
	}
	if ratio == 0 || ratio > s.growth {
		broken = append(broken, fmt.Errorf("memory grew by %.3f, bound %.3f", ratio, s.growth))
	}
	return errors.Join(broken...)
}

// watch reads the server's resident memory until ctx ends, in MiB.
func watch(ctx context.Context, c *client, duration time.Duration) (memory []float64) {
	every := time.NewTicker(max(duration/60, time.Second))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return memory
		case <-every.C:
			if m, err := c.metrics(ctx); err == nil {
				memory = append(memory, m["process_resident_memory_bytes"]/(1<<20))
			}
		}
	}
}

// viewer is one person: a view of some tiles that is panned most of the time and
// zoomed now and then. What was seen already comes from the browser's cache.
type viewer struct {
	c      *client
	seen   *seen
	think  time.Duration
	rnd    *rand.Rand
	slides []slide

	s     slide
	level int
	x, y  int64 // the view's first tile
	had   map[string]bool
}

// The view, in tiles.
const viewCols, viewRows = 5, 4

func (v *viewer) run(ctx context.Context) {
	// People don't all come at once.
	select {
	case <-ctx.Done():
		return
	case <-time.After(time.Duration(v.rnd.Int64N(int64(4 * v.think)))):
	}
	v.open()
	for ctx.Err() == nil {
		v.look(ctx)
		pause := time.Duration(v.rnd.ExpFloat64() * float64(v.think))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		v.step()
	}
}

// open begins with a slide as a whole.
func (v *viewer) open() {
	v.s = v.slides[v.rnd.IntN(len(v.slides))]
	v.level, v.x, v.y, v.had = max(v.s.top-5, 0), 0, 0, map[string]bool{}
}

// step pans by a tile or two, zooms, or takes another slide.
func (v *viewer) step() {
	switch p := v.rnd.Float64(); {
	case p < 0.02:
		v.open()
	case p < 0.17 && v.level < v.s.top:
		v.level++
		v.x, v.y = 2*v.x+viewCols/2, 2*v.y+viewRows/2
	case p < 0.27 && v.level > v.s.top-5:
		v.level--
		v.x, v.y = v.x/2, v.y/2
	default:
		v.x += v.rnd.Int64N(5) - 2
		v.y += v.rnd.Int64N(5) - 2
	}
}

// look asks for what is in view, six at a time, as a browser does.
func (v *viewer) look(ctx context.Context) {
	k := v.s.top - v.level
	cols, rows := ((v.s.width+1<<k-1)>>k+v.s.tile-1)/v.s.tile, ((v.s.height+1<<k-1)>>k+v.s.tile-1)/v.s.tile
	v.x, v.y = min(max(v.x, 0), max(cols-viewCols, 0)), min(max(v.y, 0), max(rows-viewRows, 0))
	var tiles sync.WaitGroup
	lanes := make(chan struct{}, 6)
	for y := v.y; y < min(v.y+viewRows, rows); y++ {
		for x := v.x; x < min(v.x+viewCols, cols); x++ {
			path := fmt.Sprintf("/deepzoom/%s_files/%d/%d_%d.jpg", v.s.id, v.level, x, y)
			if v.had[path] {
				continue
			}
			v.had[path] = true
			lanes <- struct{}{}
			tiles.Go(func() {
				defer func() { <-lanes }()
				v.tile(ctx, path)
			})
		}
	}
	tiles.Wait()
}

func (v *viewer) tile(ctx context.Context, path string) {
	start := time.Now()
	a, err := v.c.do(ctx, http.MethodGet, path, nil, false)
	if ctx.Err() != nil {
		return
	}
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("status %d", a.status)
	}
	v.seen.note(a.made, time.Since(start), err)
}

// sample asks for batches of random patches until ctx ends. A busy server is
// asked again after a moment, as it says.
func sample(ctx context.Context, c *client, seen *seen, slides []slide, batch int, rnd *rand.Rand) {
	last := time.Now()
	for ctx.Err() == nil {
		s := slides[rnd.IntN(len(slides))]
		body := patches(s, batch, rnd)
		start := time.Now()
		a, err := c.do(ctx, http.MethodPost, "/patches", body, false)
		switch {
		case ctx.Err() != nil:
			seen.wait(time.Since(last), 0)
			return
		case err == nil && a.status == http.StatusServiceUnavailable:
			seen.note("busy", time.Since(start), nil)
			time.Sleep(100 * time.Millisecond)
			continue
		case err == nil && a.status != http.StatusOK:
			err = fmt.Errorf("status %d", a.status)
		}
		seen.note("batch", time.Since(start), err)
		if err == nil {
			seen.wait(time.Since(last), batch)
			last = time.Now()
		}
	}
}

// patches is a request for random patches of a slide.
func patches(s slide, n int, rnd *rand.Rand) []byte {
	type item struct {
		X int64 `json:"x"`
		Y int64 `json:"y"`
	}
	q := struct {
		Slide  string `json:"slide"`
		Width  int    `json:"width"`
		Height int    `json:"height"`
		Format string `json:"format"`
		Items  []item `json:"items"`
	}{Slide: s.name, Width: 256, Height: 256, Format: "raw"}
	for range n {
		q.Items = append(q.Items, item{rnd.Int64N(max(s.width-256, 1)), rnd.Int64N(max(s.height-256, 1))})
	}
	b, err := json.Marshal(q)
	if err != nil {
		panic(err) // there is nothing in it that JSON can't hold
	}
	return b
}
