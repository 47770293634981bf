package tiles

import (
	"context"
	"image"
	"slices"
	"testing"
	"time"

	"github.com/microtome/microtome"
)

// A tile too large for the caches is decoded once for an answer, however many
// bands and rows that is made in: a strip of 2550x3300 in one tile was decoded
// 3300 times for one pixel. The pixels are those of small tiles.
func TestLargeTilesAreDecodedOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		size image.Point
		tile image.Point
		down float64
		want int64 // tiles
	}{
		{"one tile, one pixel", image.Pt(2550, 1700), image.Pt(2550, 1700), 4096, 1},
		{"one tile, many rows", image.Pt(2550, 1700), image.Pt(2550, 1700), 16, 1},
		{"rows of two", image.Pt(2550, 1700), image.Pt(1300, 900), 300, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			large := newFake("large", 3, c.tile.X, c.tile.Y, c.size)
			small := &fakeSlide{info: &microtome.Info{}, pix: large.pix, ch: 3}
			*small.info = *large.info
			small.info.Generation.ID, small.info.Levels = "small", slices.Clone(large.info.Levels)
			g := &small.info.Levels[0].Grid
			g.TileWidth, g.TileHeight, g.Cols, g.Rows = 256, 256, (c.size.X+255)/256, (c.size.Y+255)/256
			q := Region{Width: max(1, int(float64(c.size.X)/c.down)), Height: max(1, int(float64(c.size.Y)/c.down)), Scale: Scale{Kind: ByDownsample, Value: c.down}}
			var got [2]microtome.Pixels
			for i, s := range []*fakeSlide{large, small} {
				e := &fakeEngine{}
				r := newTestReader(t, e, func(o *Options) { o.PixelBytes = 1 << 20; o.PyramidDir = "" })
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				px, _, err := r.RegionPixels(ctx, s, q, PixelOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer px.Release()
				got[i] = px
				if s == large && e.jobs.Load() != c.want {
					t.Errorf("%d decodes of %d tiles", e.jobs.Load(), c.want)
				}
			}
			a, stride, _ := got[0].Host()
			b, _, _ := got[1].Host()
			if string(a[:stride*got[0].Height()]) != string(b[:stride*got[1].Height()]) {
				t.Error("other pixels than from small tiles")
			}
		})
	}
}
