package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/tiles"
)

// Worker is our side of a child process: it answers asks about one slide.
type Worker struct {
	Slide   microtome.Slide
	Decoder microtome.Decoder
	Encoder microtome.Encoder
	// Batch patches are asked for at once; 1 is one after the other.
	Batch int
	// Loop, when set, makes the worker the limit: it decodes the bare tiles.
	Loop func([]Stream)

	reader *tiles.Reader
}

// Stream is a JPEG tile and the part of it to be decoded; an empty part is the
// whole.
type Stream struct {
	Data       []byte
	RGB        bool // its three components are red, green and blue
	X, Y, W, H int
}

// Serve answers asks until in ends.
func (w *Worker) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	if err := enc.Encode(Hello{Version: w.Decoder.Name()}); err != nil {
		return err
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return w.close()
		}
		if err != nil {
			return err
		}
		var q Ask
		var a Answer
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if a, err = w.answer(ctx, q); err != nil {
			a = Answer{Error: err.Error()}
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
}

func (w *Worker) close() error {
	if w.reader == nil {
		return nil
	}
	return w.reader.Close()
}

func (w *Worker) answer(ctx context.Context, q Ask) (Answer, error) {
	if q.Patch <= 0 || q.Callers <= 0 || len(q.At) == 0 {
		return Answer{}, fmt.Errorf("bench: nothing is asked")
	}
	if w.Loop != nil {
		return w.limit(ctx, q)
	}
	if q.Cold || w.reader == nil {
		if err := w.close(); err != nil {
			return Answer{}, err
		}
		// Half of the memory for pixels is for patches.
		r, err := tiles.New(tiles.Options{Decoder: w.Decoder, Encoder: w.Encoder, PixelBytes: 2 * q.Cache})
		if err != nil {
			return Answer{}, err
		}
		w.reader = r
	}
	sums := make([]uint32, len(q.At))
	start := time.Now()
	err := w.callers(q, func(from, to int) error { return w.patches(ctx, q, from, to, sums) })
	a := Answer{Seconds: time.Since(start).Seconds()}
	if q.Sum {
		a.Sum = fmt.Sprintf("%08x", sums)
	}
	return a, err
}

// callers splits the work between callers, batch by batch.
func (w *Worker) callers(q Ask, work func(from, to int) error) error {
	var next atomic.Int64
	errs := make([]error, q.Callers)
	var all sync.WaitGroup
	for i := range q.Callers {
		all.Go(func() {
			for errs[i] == nil {
				to := int(next.Add(int64(w.Batch)))
				from := to - w.Batch
				if from >= len(q.At) {
					return
				}
				errs[i] = work(from, min(to, len(q.At)))
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// patches asks for the patches [from, to) at once.
func (w *Worker) patches(ctx context.Context, q Ask, from, to int, sums []uint32) error {
	items := make([]tiles.Patch, 0, to-from)
	for _, at := range q.At[from:to] {
		items = append(items, tiles.Patch{Slide: w.Slide, Region: tiles.Region{L0X: at.X, L0Y: at.Y, Width: q.Patch, Height: q.Patch}})
	}
	got, _, err := w.reader.Patches(ctx, items, tiles.PatchOptions{Channels: 3, Priority: microtome.PrioritySampler})
	if err != nil {
		return err
	}
	for i, res := range got {
		if res.Err != nil {
			return res.Err
		}
		if q.Sum {
			sums[from+i] = sumOf(res.Pixels)
		}
		res.Pixels.Release()
	}
	return nil
}

// limit decodes the tiles under the patches by the bare loop: each once when
// they are a grid, else the part of each that a patch needs.
func (w *Worker) limit(ctx context.Context, q Ask) (Answer, error) {
	streams, err := w.streams(ctx, q)
	if err != nil {
		return Answer{}, err
	}
	parts := make([][]Stream, q.Callers)
	for i, s := range streams {
		parts[i%q.Callers] = append(parts[i%q.Callers], s)
	}
	start := time.Now()
	var all sync.WaitGroup
	for _, p := range parts {
		all.Go(func() { w.Loop(p) })
	}
	all.Wait()
	return Answer{Seconds: time.Since(start).Seconds()}, nil
}

// streams are the tiles under the patches.
func (w *Worker) streams(ctx context.Context, q Ask) ([]Stream, error) {
	g := &w.Slide.Info().Levels[0].Grid
	whole := adjoin(q)
	seen := map[[2]int]bool{}
	var all []Stream
	for _, at := range q.At {
		for row := int(at.Y) / g.TileHeight; row <= (int(at.Y)+q.Patch-1)/g.TileHeight; row++ {
			for col := int(at.X) / g.TileWidth; col <= (int(at.X)+q.Patch-1)/g.TileWidth; col++ {
				if whole && seen[[2]int{col, row}] {
					continue
				}
				seen[[2]int{col, row}] = true
				t, err := w.Slide.ReadTile(ctx, 0, 0, col, row)
				if err != nil {
					return nil, err
				}
				if t.Codec != microtome.CodecJPEG || t.Samples != 3 {
					return nil, fmt.Errorf("the bare loop decodes JPEG of three components, not this slide's tiles")
				}
				s := Stream{Data: t.Data, RGB: t.Color == microtome.ColorRGB}
				if !whole {
					s.X, s.Y = max(int(at.X)-col*g.TileWidth, 0), max(int(at.Y)-row*g.TileHeight, 0)
					s.W = min(int(at.X)+q.Patch-col*g.TileWidth, t.VisibleWidth) - s.X
					s.H = min(int(at.Y)+q.Patch-row*g.TileHeight, t.VisibleHeight) - s.Y
				}
				all = append(all, s)
			}
		}
	}
	return all, nil
}

// adjoin says that the patches lie side by side.
func adjoin(q Ask) bool {
	return len(q.At) > 1 && q.At[1].X-q.At[0].X == int64(q.Patch) && q.At[1].Y == q.At[0].Y
}
