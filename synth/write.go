package synth

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"github.com/microtome/microtome/synth/scene"
	"github.com/microtome/microtome/synth/tiffw"
)

// writer is one slide being written.
type writer struct {
	s        Spec
	levels   []Level
	scene    *scene.Scene
	w        *tiffw.Writer
	encoders []*tileEncoder // one per goroutine
	blank    map[[2]int][]byte
	progress func(done, total int64)
	done     int64
	total    int64
}

// Write writes the slide. It needs no memory beyond some tiles; w is left at
// the end of the file.
func Write(w io.WriteSeeker, spec Spec) error { return write(w, spec, nil) }

// WriteFile writes the slide to path by way of a temporary file beside it.
// progress, unless nil, is called now and then with the tiles done and the total.
func WriteFile(path string, spec Spec, progress func(done, total int64)) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err = write(f, spec, progress); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func write(out io.WriteSeeker, spec Spec, progress func(done, total int64)) error {
	spec = spec.withDefaults()
	if err := spec.Check(); err != nil {
		return err
	}
	wr := &writer{s: spec, levels: spec.PyramidLevels(), blank: map[[2]int][]byte{}, progress: progress}
	if err := wr.prepare(); err != nil {
		return err
	}
	wr.w = tiffw.New(out, tiffw.Options{Big: spec.Big, Order: spec.order()})
	var err error
	switch {
	case spec.Format == SVS:
		err = wr.svs()
	case spec.planes() > 0:
		err = wr.omePlanes()
	case spec.Layout == COG:
		err = wr.cog()
	default:
		err = wr.pyramid(wr.description(), 0)
	}
	if err != nil {
		return err
	}
	if err := wr.w.Close(); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	if !spec.Big && wr.w.Pos() > math.MaxUint32 {
		return fmt.Errorf("synth: %d bytes are too many for a classic TIFF: ask for BigTIFF", wr.w.Pos())
	}
	return nil
}

func (wr *writer) prepare() (err error) {
	if wr.scene, err = scene.New(wr.s.Scene); err != nil {
		return err
	}
	for range runtime.GOMAXPROCS(0) {
		e, err := newTileEncoder(wr.s, wr.channels())
		if err != nil {
			return err
		}
		wr.encoders = append(wr.encoders, e)
	}
	for _, l := range wr.levels {
		wr.total += int64(wr.grid(l).cells()) * int64(max(wr.s.planes(), 1))
	}
	return nil
}

// channels is the samples per pixel.
func (wr *writer) channels() int {
	if wr.s.planes() > 0 {
		return 1
	}
	return 3
}

// grid is how a level is cut into cells.
type grid struct {
	level         Level
	tileW, tileH  int
	cols, rows    int
	planes        int // separately stored channels
	strips        bool
	width, height int
}

func (wr *writer) grid(l Level) grid {
	g := grid{level: l, tileW: wr.s.Tile, tileH: wr.s.Tile, planes: 1, width: l.Width, height: l.Height}
	if wr.s.RowsPerStrip > 0 {
		g.strips, g.tileW, g.tileH = true, l.Width, min(wr.s.RowsPerStrip, l.Height)
	}
	if wr.s.Planar {
		g.planes = wr.channels()
	}
	g.cols, g.rows = (l.Width+g.tileW-1)/g.tileW, (l.Height+g.tileH-1)/g.tileH
	return g
}

func (g grid) cells() int { return g.cols * g.rows * g.planes }

// cell is one tile or strip to make.
type cell struct {
	x, y, w, h int
	channel    int // of a planar grid
}

// cell is the i-th in the order of the offsets array. Tiles at the edge keep
// their full size, the last strip does not.
func (g grid) cell(i int) cell {
	plane, i := i/(g.cols*g.rows), i%(g.cols*g.rows)
	c := cell{x: i % g.cols * g.tileW, y: i / g.cols * g.tileH, w: g.tileW, h: g.tileH, channel: plane}
	if g.strips {
		c.h = min(c.h, g.height-c.y)
	}
	return c
}
