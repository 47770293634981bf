package tiff_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
	"github.com/microtome/microtome/synth/tiffw"
)

// TestReadCells: near cells come by one read of at most a tenth more than they
// need; what breaks one cell leaves the others.
func TestReadCells(t *testing.T) {
	const gap = 100
	p := write(t, tiffw.Options{}, func(w *tiffw.Writer) {
		var at [7]uint32
		for i := range at {
			at[i] = uint32(w.Block(filled(256, i+1)))
			switch i {
			case 1, 2:
				w.Block(filled(20, 0xee)) // 20 of 532: near
			case 3:
				w.Block(filled(gap, 0xee)) // 100 of 1,164 more: not near enough
			}
		}
		// Cell 7 is sparse, cell 8 lies beyond the file, cell 9 repeats cell 0.
		w.Dir(picture(160, 16, 1, 1, 1).Short(322, 16).Short(323, 16).
			Long(324, at[0], at[1], at[2], at[3], at[4], at[5], at[6], 0, 1<<30, at[0]).
			Long(325, 256, 256, 256, 256, 256, 256, 256, 0, 256, 256))
	})
	src := memory(p)
	f, err := tiff.Parse(context.Background(), src, tiff.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d := f.Dirs[0]
	read(t, d, 0, 0) // the tables
	order := []int{5, 0, 9, 3, 7, 1, 8, 2, 6, 4, 20}
	want := make([]tiff.Cell, len(order))
	for i, col := range order {
		want[i].Col = col
	}
	out := make([]microtome.TileResult, len(want))
	before := src.reads.Load()
	n := d.ReadCells(context.Background(), want, out)
	for i, col := range order {
		one, err := d.ReadCell(context.Background(), col, 0, 0)
		if !bytes.Equal(out[i].Tile.Data, one.Data) || (err == nil) != (out[i].Err == nil) {
			t.Errorf("cell %d: %d bytes, %v; alone %d bytes, %v", col, len(out[i].Tile.Data), out[i].Err, len(one.Data), err)
		}
	}
	for i, kind := range map[int]error{4: microtome.ErrEmptyTile, 6: microtome.ErrCorrupt, 10: microtome.ErrNotFound} {
		if !errors.Is(out[i].Err, kind) {
			t.Errorf("cell %d: %v, want %v", order[i], out[i].Err, kind)
		}
	}
	if n.Tiles != 8 || n.TileBytes != 7*256 || 10*n.ReadBytes > 11*n.TileBytes {
		t.Errorf("%+v", n)
	}
	if n.Reads < 2 || n.Reads > 3 {
		t.Errorf("%d reads: the near ones are to come together, the far ones apart", n.Reads)
	}
	if got := src.reads.Load() - before; got < n.Reads {
		t.Errorf("%d reads counted, %d made", n.Reads, got)
	}
}
