package tiles

import (
	"context"
	"image"
)

// request is a rectangle of a picture through two axes: the answer's pixels
// [x0, x0+w) x [y0, y0+h).
type request struct {
	p      *picture
	ax, ay axis
	x0, y0 int64
	w, h   int
	// clamp paints what lies outside the picture like its nearest pixel;
	// otherwise it is background.
	clamp  bool
	access access
}

// bandPixels bounds the source pixels that are held at once while filtering.
const bandPixels = 4 << 20

// source is the part of the picture under the request's rows [j0, j1).
func (q *request) source(j0, j1 int) image.Rectangle {
	sx0, sx1 := q.ax.span(q.x0, q.x0+int64(q.w))
	sy0, sy1 := q.ay.span(q.y0+int64(j0), q.y0+int64(j1))
	if sx0 >= sx1 || sy0 >= sy1 {
		return image.Rectangle{}
	}
	return image.Rect(int(sx0), int(sy0), int(sx1), int(sy1))
}

// bandCost is what the source of a filtered request takes at once, in bytes.
func (q *request) bandCost() int64 {
	if q.ax.copies() && q.ay.copies() {
		return 0
	}
	return int64(min(area(q.source(0, q.h)), bandPixels) * q.p.channels())
}

// scaled makes the request's pixels: a copy where the axes copy, else one area
// filter over whole decoded tiles, band by band. drawn counts the tiles that
// had pixels.
func (q *request) scaled(ctx context.Context) (dst *canvas, drawn int, err error) {
	dst = newCanvas(q.w, q.h, q.p.channels())
	if q.ax.copies() && q.ay.copies() && !q.sticksOut() {
		drawn, err = q.copied(ctx, dst)
	} else {
		drawn, err = q.filtered(ctx, dst)
	}
	if err != nil {
		dst.free()
		return nil, 0, err
	}
	return dst, drawn, nil
}

// sticksOut says that a copy needs pixels beyond the picture that clamp must
// invent.
func (q *request) sticksOut() bool {
	return q.clamp && (q.ax.origin+q.x0+int64(q.w) > q.ax.size || q.ay.origin+q.y0+int64(q.h) > q.ay.size)
}

// copied lays tiles side by side, background around them.
func (q *request) copied(ctx context.Context, dst *canvas) (int, error) {
	lx, ly := q.ax.origin+q.x0, q.ay.origin+q.y0
	x0, x1 := max(lx, 0), min(lx+int64(q.w), q.ax.size)
	y0, y1 := max(ly, 0), min(ly+int64(q.h), q.ay.size)
	if x0 >= x1 || y0 >= y1 {
		dst.fill(0, 0, dst.w, dst.h, q.p.bg)
		return 0, nil
	}
	if x1-x0 < int64(q.w) || y1-y0 < int64(q.h) {
		dst.fill(0, 0, dst.w, dst.h, q.p.bg)
	}
	src := image.Rect(int(x0), int(y0), int(x1), int(y1))
	return q.p.assemble(ctx, src, dst, int(x0-lx), int(y0-ly), q.access)
}

// filtered fetches the source in bands of rows and filters each.
func (q *request) filtered(ctx context.Context, dst *canvas) (drawn int, err error) {
	f := newFilter(q.ax, q.ay, q.x0, q.w, q.clamp, dst.ch, q.p.bg)
	q.access.held = q.holds()
	defer q.access.held.drop()
	for j0 := 0; j0 < q.h; {
		j1 := q.bandEnd(j0)
		src := q.source(j0, j1)
		if src.Empty() && q.clamp {
			src = q.nearest(j0, j1)
		}
		n := 0
		switch {
		case src.Empty():
			f.rows(dst, j0, j1, q.y0, nil, src)
		case area(src) > bandPixels:
			n, err = q.tallRow(ctx, f, dst, j0, src)
		default:
			n, err = q.band(ctx, src, func(band *canvas) { f.rows(dst, j0, j1, q.y0, band, src) })
		}
		if drawn += n; err != nil {
			return drawn, err
		}
		j0 = j1
	}
	return drawn, nil
}

// band hands a part of the source to use.
func (q *request) band(ctx context.Context, src image.Rectangle, use func(*canvas)) (int, error) {
	band := newCanvas(src.Dx(), src.Dy(), q.p.channels())
	defer band.free()
	n, err := q.p.assemble(ctx, src, band, 0, 0, q.access)
	if err == nil {
		use(band)
	}
	return n, err
}

// tallRow makes one row of the answer whose source is too large to be held at
// once.
func (q *request) tallRow(ctx context.Context, f *filter, dst *canvas, j int, src image.Rectangle) (drawn int, err error) {
	var t tap
	t, f.vert = q.ay.appendTap(f.vert[:0], q.y0+int64(j), q.clamp)
	clear(f.sums)
	step := max(1, bandPixels/src.Dx())
	if tile := q.p.grid.TileHeight; step > tile {
		step -= step % tile
	}
	for y := src.Min.Y; y < src.Max.Y; {
		part := src
		part.Min.Y, part.Max.Y = y, min(src.Max.Y, (y/step+1)*step)
		n, err := q.band(ctx, part, func(band *canvas) {
			f.lineOf = -1
			f.add(t, band, part)
		})
		if drawn += n; err != nil {
			return drawn, err
		}
		y = part.Max.Y
	}
	f.store(dst, j)
	return drawn, nil
}

// nearest is the pixel row or column that a clamped request outside the picture
// repeats.
func (q *request) nearest(j0, j1 int) image.Rectangle {
	inside := func(s0, s1, size int64) (int, int) {
		s0 = min(max(s0, 0), size-1)
		return int(s0), int(min(max(s1, s0+1), size))
	}
	x0, x1 := inside(q.ax.edge(q.x0)>>edgeBits, q.ax.edge(q.x0+int64(q.w))>>edgeBits+1, q.ax.size)
	y0, y1 := inside(q.ay.edge(q.y0+int64(j0))>>edgeBits, q.ay.edge(q.y0+int64(j1))>>edgeBits+1, q.ay.size)
	return image.Rect(x0, y0, x1, y1)
}

// bandEnd is the end of the band of rows that begins at j0.
func (q *request) bandEnd(j0 int) int {
	j1 := q.h
	for j1 > j0+1 {
		s := q.source(j0, j1)
		if s.Dx()*s.Dy() <= bandPixels {
			break
		}
		j1 = j0 + (j1-j0)/2
	}
	return j1
}
