package tiles

import (
	"context"
	"image"
)

// assemble lays the part src of the picture, which must lie inside it, on dst
// with its corner at (dx, dy). Empty tiles become background. It returns how
// many tiles had pixels; a tile that cannot be read fails the whole.
func (p *picture) assemble(ctx context.Context, src image.Rectangle, dst *canvas, dx, dy int, a access) (int, error) {
	l := &lay{p: p, src: src, dst: dst, ch: dst.ch, off: image.Pt(dx-src.Min.X, dy-src.Min.Y)}
	p.r.lay(ctx, []*lay{l}, a)
	return int(l.drawn.Load()), l.err()
}
