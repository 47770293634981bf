package tiles

import (
	"errors"
	"image"
	"sync/atomic"

	"github.com/microtome/microtome"
)

// lay is a part of a picture on its way to a canvas, tile by tile.
type lay struct {
	p   *picture
	src image.Rectangle // of the picture, inside it
	dst *canvas
	off image.Point // from the picture's pixels to the canvas's
	// alone says that the lay is one whole tile, whose pixels are to be taken
	// over as px when they have as many channels; dst is made otherwise.
	alone bool
	ch    int // of the canvas
	// warm says that nothing is drawn: the tiles are wanted in the cache.
	warm bool
	px   microtome.Pixels
	// then, when set, is called once, by whoever lays the last tile.
	then func()

	left   atomic.Int32 // tiles to be laid, and one until all are known
	drawn  atomic.Int32 // tiles that had pixels
	missed atomic.Bool  // a tile was not kept
	failed atomic.Pointer[layError]
}

// layError is why a lay has no pixels: the error of its first tile that failed.
type layError struct {
	load int
	err  error
}

// fail notes an error of the load-th tile of a gathering.
func (l *lay) fail(load int, err error) {
	e := &layError{load, err}
	for {
		old := l.failed.Load()
		if old != nil && old.load <= load || l.failed.CompareAndSwap(old, e) {
			return
		}
	}
}

func (l *lay) err() error {
	if e := l.failed.Load(); e != nil {
		return e.err
	}
	return nil
}

// landed counts a tile off.
func (l *lay) landed() {
	if l.left.Add(-1) == 0 && l.then != nil {
		l.then()
	}
}

// canvas is what the lay is drawn on. Only a lay of one tile makes its own.
func (l *lay) canvas() *canvas {
	if l.dst == nil {
		l.dst = newCanvas(l.src.Dx(), l.src.Dy(), l.ch)
	}
	return l.dst
}

// put draws the part of the picture that px, which begin at origin, show.
func (l *lay) put(px microtome.Pixels, origin image.Point, part image.Rectangle) error {
	if l.warm {
		return nil
	}
	ch := px.Channels()
	if l.alone && ch == l.ch && px.Width() == part.Dx() && px.Height() == part.Dy() {
		px.Retain()
		l.px = px
		return nil
	}
	pix, stride, ok := px.Host()
	if !ok {
		return errNotHost
	}
	at, from := part.Add(l.off), part.Min.Sub(origin)
	l.canvas().draw(at.Min.X, at.Min.Y, block{
		pix: pix[from.Y*stride+from.X*ch:], stride: stride, w: part.Dx(), h: part.Dy(), ch: ch,
	}, l.p.bg)
	return nil
}

// blank paints a part of the picture in the background's colour.
func (l *lay) blank(part image.Rectangle) {
	if l.warm {
		return
	}
	at := part.Add(l.off)
	l.canvas().fill(at.Min.X, at.Min.Y, at.Max.X, at.Max.Y, l.p.bg)
}

// taken returns the pixels of a lay that was laid, or why there are none. They
// are the caller's.
func (l *lay) taken() (microtome.Pixels, error) {
	if err := l.err(); err != nil {
		if l.px != nil {
			l.px.Release()
		} else if l.dst != nil {
			l.dst.free()
		}
		return nil, err
	}
	if l.px != nil {
		return l.px, nil
	}
	return l.canvas().pixels(), nil
}

var errNotHost = errors.New("tiles: pixels are not in host memory")
