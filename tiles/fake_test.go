package tiles

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/microtome/microtome"
)

// fakeSlide is a slide of uncompressed tiles in memory. Padding is 0xEE.
type fakeSlide struct {
	info  *microtome.Info
	pix   [][]byte // by level, packed; plane n adds n to every sample
	ch    int
	empty map[[3]int]bool // level, col, row
	bad   map[[3]int]bool
	assoc []byte
	reads atomic.Int64
	codec func(microtome.Tile) microtome.Tile // changes a tile, when not nil
}

// newFake makes a slide of random soft content with levels of the given sizes.
func newFake(id string, ch, tw, th int, sizes ...image.Point) *fakeSlide {
	s := &fakeSlide{ch: ch, empty: map[[3]int]bool{}, bad: map[[3]int]bool{}}
	s.info = &microtome.Info{Format: "fake", Generation: microtome.Generation{ID: id}, Planes: microtome.Planes{C: 1, Z: 1, T: 1}}
	rng := rand.New(rand.NewPCG(uint64(len(id)), uint64(tw)))
	for i, size := range sizes {
		g := microtome.Grid{Width: int64(size.X), Height: int64(size.Y), TileWidth: tw, TileHeight: th,
			Cols: (size.X + tw - 1) / tw, Rows: (size.Y + th - 1) / th, Samples: ch, Bits: 8, Color: microtome.ColorRGB}
		if ch == 1 {
			g.Color = microtome.ColorGray
		}
		down := (float64(sizes[0].X)/float64(size.X) + float64(sizes[0].Y)/float64(size.Y)) / 2
		s.info.Levels = append(s.info.Levels, microtome.Level{Grid: g, Downsample: down})
		pix := make([]byte, size.X*size.Y*ch)
		for j := range pix {
			pix[j] = byte(rng.UintN(256))
			if i%2 == 0 && j >= ch && rng.UintN(3) > 0 {
				pix[j] = pix[j-ch]
			}
		}
		s.pix = append(s.pix, pix)
	}
	return s
}

func (s *fakeSlide) Info() *microtome.Info { return s.info }

func (s *fakeSlide) ReadTile(ctx context.Context, level, plane, col, row int) (microtome.Tile, error) {
	s.reads.Add(1)
	at := [3]int{level, col, row}
	if s.empty[at] {
		return microtome.Tile{}, microtome.ErrEmptyTile
	}
	g := s.info.Levels[level].Grid
	t := cut(g, s.pix[level], s.ch, col, row)
	for i := range t.Data {
		t.Data[i] += byte(plane)
	}
	if s.bad[at] {
		t.Data = t.Data[:3]
	}
	if s.codec != nil {
		t = s.codec(t)
	}
	return t, ctx.Err()
}

func cut(g microtome.Grid, pix []byte, ch, col, row int) microtome.Tile {
	vis := g.TileRect(col, row)
	data := bytes.Repeat([]byte{0xee}, g.TileWidth*g.TileHeight*ch)
	for y := range vis.Dy() {
		copy(data[y*g.TileWidth*ch:][:vis.Dx()*ch], pix[((vis.Min.Y+y)*int(g.Width)+vis.Min.X)*ch:])
	}
	return microtome.Tile{Data: data, Codec: microtome.CodecNone, Color: g.Color, Width: g.TileWidth, Height: g.TileHeight,
		VisibleWidth: vis.Dx(), VisibleHeight: vis.Dy(), StreamHeight: g.TileHeight, Samples: ch, Bits: 8, Predictor: 1, FillOrder: 1}
}

func (s *fakeSlide) ReadAssociated(_ context.Context, name string, col, row int) (microtome.Tile, error) {
	for _, a := range s.info.Associated {
		if a.Name == name {
			return cut(a.Grid, s.assoc, 3, col, row), nil
		}
	}
	return microtome.Tile{}, microtome.ErrNotFound
}
func (s *fakeSlide) Properties(context.Context) (map[string]string, error) { return nil, nil }
func (s *fakeSlide) ContentID(context.Context) (string, error)             { return "content", nil }
func (s *fakeSlide) ICCProfile(_ context.Context, name string) ([]byte, error) {
	return []byte("icc " + name), nil
}
func (s *fakeSlide) Close() error { return nil }

// fakeEngine decodes uncompressed tiles and JPEG, and counts.
type fakeEngine struct {
	jobs   atomic.Int64
	crops  atomic.Int64
	gate   chan struct{} // when not nil, decoding waits for it
	busy   atomic.Int64  // jobs still to be refused
	reduce bool
	mu     sync.Mutex
	icc    []byte
}

func (e *fakeEngine) DecodeBatch(ctx context.Context, jobs []microtome.Job) []microtome.Result {
	out := make([]microtome.Result, len(jobs))
	for i, j := range jobs {
		e.jobs.Add(1)
		if e.gate != nil {
			<-e.gate
		}
		if !j.Crop.Empty() {
			e.crops.Add(1)
		}
		if e.busy.Add(-1) >= 0 {
			out[i].Err = microtome.ErrBusy
			continue
		}
		p, err := e.decode(j)
		if err != nil {
			out[i].Err = err
			continue
		}
		out[i].Pixels = p
	}
	return out
}

func (e *fakeEngine) decode(j microtome.Job) (microtome.Pixels, error) {
	t := j.Tile
	ch := t.Samples
	if t.Codec == microtome.CodecJPEG {
		img, err := jpeg.Decode(bytes.NewReader(t.Data))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", microtome.ErrCorrupt, err)
		}
		b := img.Bounds()
		t.Width, t.Data = b.Dx(), make([]byte, 0, b.Dx()*b.Dy()*ch)
		for y := range b.Dy() {
			for x := range b.Dx() {
				c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
				t.Data = append(t.Data, []byte{c.R, c.G, c.B}[:ch]...)
			}
		}
	}
	if len(t.Data) < t.Width*t.VisibleHeight*ch {
		return nil, fmt.Errorf("short tile: %w", microtome.ErrCorrupt)
	}
	part := image.Rect(0, 0, t.VisibleWidth, t.VisibleHeight)
	if !j.Crop.Empty() {
		part = j.Crop
	}
	n := 1 << j.Reduce
	w, h := (part.Dx()+n-1)/n, (part.Dy()+n-1)/n
	pix := make([]byte, w*h*ch)
	for y := range h {
		for x := range w {
			for c := range ch {
				sum, k := 0, 0
				for v := y * n; v < min((y+1)*n, part.Dy()); v++ {
					for u := x * n; u < min((x+1)*n, part.Dx()); u++ {
						sum += int(t.Data[((part.Min.Y+v)*t.Width+part.Min.X+u)*ch+c])
						k++
					}
				}
				pix[(y*w+x)*ch+c] = byte((sum + k/2) / k)
			}
		}
	}
	return microtome.NewHostPixels(pix, w, h, ch, nil), nil
}

func (e *fakeEngine) CanReduce(microtome.Codec) bool { return e.reduce }
func (e *fakeEngine) Name() string                   { return "fake" }
func (e *fakeEngine) Close() error                   { return nil }

func (e *fakeEngine) Encode(_ context.Context, p microtome.Pixels, o microtome.EncodeOptions) ([]byte, error) {
	e.mu.Lock()
	e.icc = o.ICC
	e.mu.Unlock()
	pix, stride, _ := p.Host()
	if o.Format == microtome.FormatRaw { // fake pixels are packed
		return bytes.Clone(pix[:p.Width()*p.Height()*p.Channels()]), nil
	}
	var img image.Image
	if p.Channels() == 1 {
		img = &image.Gray{Pix: pix, Stride: stride, Rect: image.Rect(0, 0, p.Width(), p.Height())}
	} else {
		rgba := image.NewRGBA(image.Rect(0, 0, p.Width(), p.Height()))
		for y := range p.Height() {
			for x := range p.Width() {
				c := pix[y*stride+x*3:]
				rgba.SetRGBA(x, y, color.RGBA{c[0], c[1], c[2], 255})
			}
		}
		img = rgba
	}
	var b bytes.Buffer
	var err error
	if o.Format == microtome.FormatPNG {
		err = png.Encode(&b, img)
	} else {
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: max(o.Quality, 1)})
	}
	return b.Bytes(), err
}

func (e *fakeEngine) CropJPEG(_ context.Context, t microtome.Tile) ([]byte, error) {
	return testJPEG(t.VisibleWidth, t.VisibleHeight), nil
}

// testJPEG is a small true picture of a size.
func testJPEG(w, h int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, w, h)), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func newTestReader(t testing.TB, e *fakeEngine, change func(*Options)) *Reader {
	t.Helper()
	o := Options{Decoder: e, Encoder: e, AnswerBytes: 8 << 20, PixelBytes: 32 << 20, Background: microtome.RGB{R: 10, G: 20, B: 30}}
	if change != nil {
		change(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// at is a sample of a level, background outside.
func (s *fakeSlide) at(level, x, y, c int, bg microtome.RGB) byte {
	g := s.info.Levels[level].Grid
	if x < 0 || y < 0 || x >= int(g.Width) || y >= int(g.Height) || s.empty[[3]int{level, x / g.TileWidth, y / g.TileHeight}] {
		if s.ch == 1 {
			return luma(bg)
		}
		return [3]byte{bg.R, bg.G, bg.B}[c]
	}
	return s.pix[level][(y*int(g.Width)+x)*s.ch+c]
}
