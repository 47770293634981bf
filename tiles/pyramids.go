package tiles

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
)

type builtSet struct{}

func (b *builtSet) read(level, col, row int) (microtome.Tile, error) {
	return microtome.Tile{}, microtome.ErrEmptyTile
}

type pyramids struct{}

func newPyramids(r *Reader, dir string, budget int64) (*pyramids, error) { return &pyramids{}, nil }
func (p *pyramids) close()                                               {}
func (p *pyramids) stats() PyramidStats                                  { return PyramidStats{} }
func (p *pyramids) finer(s microtome.Slide, v *View, plane int, best *picture) *picture {
	return best
}

// Progress says how far the building of a slide's upper levels is.
func (r *Reader) Progress(s microtome.Slide) (done, total int64, building bool) { return 0, 0, false }

func (r *Reader) preview(ctx context.Context, s microtome.Slide, v *View, plane int, o *PixelOptions) (Answer, error) {
	return Answer{}, fmt.Errorf("too many tiles: %w", microtome.ErrLimit)
}
