package tiff

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/microtome/microtome"
)

// Cell names a cell of a directory's grid; Plane is the sample when samples are
// stored apart, else 0.
type Cell struct{ Col, Row, Plane int }

// maxRun bounds the bytes of one read of several cells.
const maxRun = 4 << 20

// ReadCells reads cells as ReadCell does, the i-th into out[i]. Cells whose bytes
// lie near each other in the file come by one read: of a run of cells, at most
// a tenth more than their own bytes is read.
func (d *Dir) ReadCells(ctx context.Context, want []Cell, out []microtome.TileResult) microtome.ReadCount {
	c, err := d.prepared(ctx)
	places := make([]place, len(want))
	order := make([]int, 0, len(want))
	for i, w := range want {
		switch {
		case err != nil:
			out[i].Err = err
		case w.Col < 0 || w.Row < 0 || w.Plane < 0 || w.Col >= c.Cols || w.Row >= c.Rows || w.Plane >= c.Planes:
			out[i].Err = fmt.Errorf("%s: cell %d,%d of %dx%d: %w", d.Name(), w.Col, w.Row, c.Cols, c.Rows, microtome.ErrNotFound)
		default:
			places[i] = c.located(ctx, d, w.Col, w.Row, w.Plane)
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(places[a].off, places[b].off) })
	var count microtome.ReadCount
	for len(order) > 0 {
		n := runOf(places, order)
		count.Add(d.readRun(ctx, c, places, order[:n]))
		for _, i := range order[:n] {
			out[i].Tile, out[i].Err = places[i].finish(c, d)
		}
		order = order[n:]
	}
	return count
}

// runOf says how many of the cells in order, sorted by offset, are read
// together: as many as leave at most a tenth of what is read unused. Cells that
// share their bytes count once.
func runOf(places []place, order []int) int {
	first := &places[order[0]]
	if first.err != nil {
		return 1
	}
	end, own, n := first.off+first.n, first.n, 1
	for ; n < len(order); n++ {
		p := &places[order[n]]
		if p.err != nil {
			break
		}
		next := max(end, p.off+p.n)
		add := next - max(end, p.off) // not yet counted
		if span := next - first.off; span > maxRun || 10*span > 11*(own+add) {
			break
		}
		end, own = next, own+add
	}
	return n
}

// readRun reads the bytes of a run's cells by one read.
func (d *Dir) readRun(ctx context.Context, c *cells, places []place, run []int) microtome.ReadCount {
	first := &places[run[0]]
	if first.err != nil {
		return microtome.ReadCount{}
	}
	if len(run) == 1 {
		first.buf = c.buffer(first.n)
		first.err = d.file.readFull(ctx, first.bytes(), first.off)
		return microtome.ReadCount{Tiles: 1, Reads: 1, TileBytes: first.n, ReadBytes: first.n}
	}
	end, own := first.off, int64(0)
	for _, i := range run {
		p := &places[i]
		own += max(0, p.off+p.n-max(end, p.off))
		end = max(end, p.off+p.n)
	}
	all := d.file.run(end - first.off)
	defer d.file.runs.Put(all)
	err := d.file.readFull(ctx, *all, first.off)
	for _, i := range run {
		p := &places[i]
		if p.err = err; err == nil {
			p.buf = c.buffer(p.n)
			copy(p.bytes(), (*all)[p.off-first.off:])
		}
	}
	return microtome.ReadCount{Tiles: int64(len(run)), Reads: 1, TileBytes: own, ReadBytes: int64(len(*all))}
}

// run lends memory for a run of cells.
func (f *File) run(n int64) *[]byte {
	b, ok := f.runs.Get().(*[]byte)
	if !ok || int64(cap(*b)) < n {
		b = new([]byte)
		*b = make([]byte, n)
	}
	*b = (*b)[:n]
	return b
}
