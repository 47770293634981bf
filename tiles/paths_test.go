package tiles_test

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"io"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/formats"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/synth/tiffw"
	"github.com/microtome/microtome/tiles"
)

// memory is a file in memory.
type memory struct {
	*bytes.Reader
	id string
}

func (m *memory) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	n, err := m.Reader.ReadAt(p, off)
	if err != nil && err != io.EOF {
		return n, microtome.ErrSource
	}
	return n, err
}
func (m *memory) Generation() microtome.Generation {
	return microtome.Generation{ID: m.id, Size: m.Size()}
}
func (m *memory) Close() error { return nil }

// Most faults live where two paths disagree: for every kind of slide, each tile
// is the same as region, as view, in a batch and as stored pixels, and the stored stream
// shows the same picture.
func TestAllPathsAgree(t *testing.T) {
	for name, spec := range map[string]synth.Spec{
		"svs rgb":    {Codec: synth.JPEGRGB},
		"svs ycc":    {Codec: synth.JPEG},
		"svs sparse": {Codec: synth.JPEG, Sparse: true},
		"tiff":       {Format: synth.TIFF, Layout: synth.SubIFDs},
		"deflate":    {Format: synth.TIFF, Codec: synth.Deflate, Predictor: true},
		"strips":     {Format: synth.TIFF, Codec: synth.LZW, RowsPerStrip: 16},
		"big-endian": {Format: synth.TIFF, Codec: synth.JPEG, Big: true, BigEndian: true},
		"ome planes": {Format: synth.OME, Codec: synth.Zstd, SizeC: 2},
	} {
		t.Run(name, func(t *testing.T) {
			spec.Width, spec.Height, spec.Levels = 700, 530, 2
			b := tiffw.NewBuffer()
			if err := synth.Write(b, spec); err != nil {
				t.Fatal(err)
			}
			s, err := formats.Open(t.Context(), &memory{bytes.NewReader(b.Bytes()), name}, formats.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			cpu := decode.NewCPU(decode.Options{})
			defer cpu.Close()
			r, err := tiles.New(tiles.Options{Decoder: cpu, Encoder: cpu, AnswerBytes: 8 << 20, PixelBytes: 8 << 20,
				Background: microtome.RGB{R: 255, G: 255, B: 255}})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			g := s.Info().Levels[0]
			for row := range g.Rows {
				for col := range g.Cols {
					agree(t, r, s, g, col, row)
				}
			}
		})
	}
}

func agree(t *testing.T, r *tiles.Reader, s microtome.Slide, g microtome.Level, col, row int) {
	t.Helper()
	ctx, raw := t.Context(), tiles.PixelOptions{Format: microtome.FormatRaw}
	rect := g.TileRect(col, row)
	want, err := r.StoredPixels(ctx, s, 0, 0, col, row, raw)
	if err != nil {
		t.Fatal(err)
	}
	view, err := r.View(ctx, s, tiles.View{Downsample: 1, Width: g.Width, Height: g.Height, Rect: rect}, raw)
	if err != nil || !bytes.Equal(view.Body, want.Body) {
		t.Errorf("tile %d,%d: the view differs: %v", col, row, err)
	}
	region, err := r.Region(ctx, s, tiles.Region{L0X: int64(rect.Min.X), L0Y: int64(rect.Min.Y), Width: rect.Dx(), Height: rect.Dy()}, raw)
	if err != nil || !bytes.Equal(region.Body, want.Body) {
		t.Errorf("tile %d,%d: the region differs: %v", col, row, err)
	}
	got, _, err := r.Patches(ctx, []tiles.Patch{{Slide: s, Region: tiles.Region{L0X: int64(rect.Min.X), L0Y: int64(rect.Min.Y), Width: rect.Dx(), Height: rect.Dy()}}}, tiles.PatchOptions{})
	if err != nil || got[0].Err != nil {
		t.Fatal(err, got[0].Err)
	}
	if pix, stride, _ := got[0].Pixels.Host(); stride != rect.Dx()*want.Channels || !bytes.Equal(pix[:len(want.Body)], want.Body) {
		t.Errorf("tile %d,%d: the batch differs", col, row)
	}
	got[0].Pixels.Release()
	stored, err := r.Stored(ctx, s, 0, 0, col, row)
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpeg.Decode(bytes.NewReader(stored.Body))
	if err != nil || img.Bounds() != image.Rect(0, 0, rect.Dx(), rect.Dy()) {
		t.Fatalf("tile %d,%d: the stored stream: %v", col, row, err)
	}
	// Go's decoder is not libjpeg-turbo: alike, not equal. Wrong colours are far off.
	off, ch := 0, want.Channels
	for i := 0; i < len(want.Body); i += ch {
		cr, cg, cb, _ := img.At(i/ch%rect.Dx(), i/ch/rect.Dx()).RGBA()
		got := [3]int{int(cr >> 8), int(cg >> 8), int(cb >> 8)}
		for c := range ch {
			off += max(got[c]-int(want.Body[i+c]), int(want.Body[i+c])-got[c])
		}
	}
	if mean := float64(off) / float64(len(want.Body)); mean > 6 {
		t.Errorf("tile %d,%d: %s: the stored stream is off by %.1f on average", col, row, s.Info().Format, mean)
	}
}
