// Package decodetest is the suite that every microtome.Decoder passes.
package decodetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"sync"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth/jpegenc"
)

// Options say what a decoder promises.
type Options struct {
	// Exact: warnings are errors, and all sizes and samplings that
	// libjpeg-turbo takes are taken.
	Exact bool
}

// Run tests a decoder. make is called once a test; the suite closes what it
// makes.
func Run(t *testing.T, make func() microtome.Decoder, o Options) {
	s := suite{make, o}
	t.Run("ColourMatrix", s.colourMatrix)
	t.Run("GrayIsExpanded", s.grayIsExpanded)
	t.Run("SizesAndSamplings", s.sizesAndSamplings)
	t.Run("Crops", s.crops)
	t.Run("EdgeTileShowsNoPadding", s.edgeTile)
	t.Run("Band", s.band)
	t.Run("ReducedSizes", s.reducedSizes)
	t.Run("BadStreams", s.badStreams)
	t.Run("OddOnesInABatch", s.oddOnes)
	t.Run("NoPixelOfAnotherTile", s.noOldPixel)
	t.Run("Destination", s.destination)
	t.Run("Concurrency", s.concurrency)
	t.Run("CallerLeft", s.callerLeft)
	t.Run("MissingEOIAndTrailingBytes", s.missingEOI)
}

type suite struct {
	make func() microtome.Decoder
	o    Options
}

func (s suite) decoder(t *testing.T) microtome.Decoder {
	d := s.make()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func decode(t testing.TB, d microtome.Decoder, j microtome.Job) microtome.Pixels {
	t.Helper()
	r := d.DecodeBatch(context.Background(), []microtome.Job{j})
	if len(r) != 1 || (r[0].Err == nil) == (r[0].Pixels == nil) {
		t.Fatalf("results %+v", r)
	}
	if r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	t.Cleanup(r[0].Pixels.Release)
	return r[0].Pixels
}

func fails(t testing.TB, d microtome.Decoder, j microtome.Job, want error) {
	t.Helper()
	r := d.DecodeBatch(context.Background(), []microtome.Job{j})[0]
	if !errors.Is(r.Err, want) || r.Pixels != nil {
		t.Errorf("error %v, want %v", r.Err, want)
	}
}

// colourMatrix (C4): the tile's Color decides, over component ids and APP14.
func (s suite) colourMatrix(t *testing.T) {
	d := s.decoder(t)
	stored := scene(48, 32, 3, 1)
	want := map[microtome.Color][]byte{microtome.ColorRGB: stored, microtome.ColorYCbCr: toRGB(stored)}
	for color, pix := range want {
		for _, ids := range [][]byte{{1, 2, 3}, {'R', 'G', 'B'}, {0, 1, 2}, {9, 7, 8}} {
			for _, adobe := range []int{-1, 0, 1} {
				o := jpegenc.Options{Color: jpegenc.RGB, IDs: ids, Adobe: adobe >= 0, Transform: byte(max(adobe, 0)), Quality: 95}
				t.Run(fmt.Sprintf("color%d ids%v adobe%d", color, ids, adobe), func(t *testing.T) {
					near(t, decode(t, d, microtome.Job{Tile: tile(stream(t, 48, 32, o, 1), 48, 32, color)}), pix, 3)
				})
			}
		}
	}
	// JFIF means YCbCr to libjpeg: it doesn't either.
	o := jpegenc.Options{Color: jpegenc.RGB, JFIF: true, Quality: 95}
	near(t, decode(t, d, microtome.Job{Tile: tile(stream(t, 48, 32, o, 1), 48, 32, microtome.ColorRGB)}), stored, 3)
}

// grayIsExpanded (C8): a stream of one component in an RGB slide.
func (s suite) grayIsExpanded(t *testing.T) {
	d := s.decoder(t)
	data := stream(t, 40, 24, jpegenc.Options{Color: jpegenc.Gray, Quality: 95}, 2)
	gray := rows(t, decode(t, d, microtome.Job{Tile: tile(data, 40, 24, microtome.ColorGray)}))
	white := rows(t, decode(t, d, microtome.Job{Tile: tile(data, 40, 24, microtome.ColorGrayWhite)}))
	for _, c := range []microtome.Color{microtome.ColorRGB, microtome.ColorYCbCr} {
		got := rows(t, decode(t, d, microtome.Job{Tile: tile(data, 40, 24, c)}))
		for i, v := range gray {
			if got[3*i] != v || got[3*i+1] != v || got[3*i+2] != v || white[i] != 255-v {
				t.Fatalf("pixel %d: grey %d, inverted %d, RGB %v", i, v, white[i], got[3*i:3*i+3])
			}
		}
	}
	fails(t, d, microtome.Job{Tile: tile(stream(t, 40, 24, jpegenc.Options{}, 2), 40, 24, microtome.ColorGray)}, microtome.ErrCorrupt)
}

// sizesAndSamplings (A11): no size is a multiple of an MCU but by chance.
func (s suite) sizesAndSamplings(t *testing.T) {
	d := s.decoder(t)
	for name, sampling := range samplings() {
		for _, p := range []image.Point{{240, 240}, {256, 256}, {100, 52}, {17, 9}, {8, 8}, {1, 1}, {3, 70}} {
			t.Run(fmt.Sprint(name, p), func(t *testing.T) {
				data := stream(t, p.X, p.Y, jpegenc.Options{Sampling: sampling, Quality: 95}, 3)
				got := decode(t, d, microtome.Job{Tile: tile(data, p.X, p.Y, microtome.ColorYCbCr)})
				near(t, got, scene(p.X, p.Y, 3, 3), 12)
			})
		}
	}
}

func samplings() map[string]jpegenc.Sampling {
	return map[string]jpegenc.Sampling{"444": jpegenc.S444, "422": jpegenc.S422, "420": jpegenc.S420, "440": jpegenc.S440, "411": jpegenc.S411}
}

// crops: the pixels of a crop are those of the whole.
func (s suite) crops(t *testing.T) {
	d := s.decoder(t)
	for name, sampling := range samplings() {
		data := stream(t, 131, 77, jpegenc.Options{Sampling: sampling}, 4)
		j := microtome.Job{Tile: tile(data, 131, 77, microtome.ColorYCbCr)}
		whole := rows(t, decode(t, d, j))
		for _, r := range []image.Rectangle{image.Rect(0, 0, 131, 77), image.Rect(0, 0, 1, 1), image.Rect(130, 76, 131, 77),
			image.Rect(16, 16, 32, 32), image.Rect(15, 17, 33, 31), image.Rect(0, 40, 131, 41), image.Rect(64, 0, 65, 77)} {
			j.Crop = r
			if !bytes.Equal(rows(t, decode(t, d, j)), cut(whole, 131, 3, r)) {
				t.Errorf("%s: crop %v differs from the whole", name, r)
			}
		}
		j.Crop = image.Rect(100, 0, 132, 5)
		fails(t, d, j, microtome.ErrMalformed)
	}
}

func (s suite) edgeTile(t *testing.T) {
	d := s.decoder(t)
	data := stream(t, 64, 64, jpegenc.Options{Sampling: jpegenc.S420}, 5)
	j := microtome.Job{Tile: tile(data, 64, 64, microtome.ColorYCbCr)}
	whole := rows(t, decode(t, d, j))
	j.Tile.VisibleWidth, j.Tile.VisibleHeight = 37, 21
	if got := decode(t, d, j); got.Width() != 37 || got.Height() != 21 || !bytes.Equal(rows(t, got), cut(whole, 64, 3, image.Rect(0, 0, 37, 21))) {
		t.Errorf("%dx%d, or other pixels than the whole's", got.Width(), got.Height())
	}
	j.Crop = image.Rect(0, 0, 38, 21)
	fails(t, d, j, microtome.ErrMalformed)
}

// band: a cell may begin inside its stream.
func (s suite) band(t *testing.T) {
	d := s.decoder(t)
	data := stream(t, 50, 90, jpegenc.Options{Sampling: jpegenc.S420}, 6)
	whole := rows(t, decode(t, d, microtome.Job{Tile: tile(data, 50, 90, microtome.ColorYCbCr)}))
	j := microtome.Job{Tile: tile(data, 50, 32, microtome.ColorYCbCr)}
	j.Tile.FirstRow, j.Tile.StreamHeight = 32, 90
	if !bytes.Equal(rows(t, decode(t, d, j)), cut(whole, 50, 3, image.Rect(0, 32, 50, 64))) {
		t.Error("the band is not rows 32 to 64")
	}
}

func (s suite) reducedSizes(t *testing.T) {
	d := s.decoder(t)
	if !d.CanReduce(microtome.CodecJPEG) {
		j := good(t, 1)
		j.Reduce = 1
		fails(t, d, j, microtome.ErrMalformed)
		return
	}
	for name, sampling := range samplings() {
		for reduce := 1; reduce <= 3; reduce++ {
			data := stream(t, 131, 77, jpegenc.Options{Sampling: sampling}, 7)
			j := microtome.Job{Tile: tile(data, 131, 77, microtome.ColorYCbCr), Reduce: reduce}
			j.Tile.VisibleWidth = 100
			up := 1<<reduce - 1
			if p := decode(t, d, j); p.Width() != (100+up)>>reduce || p.Height() != (77+up)>>reduce {
				t.Errorf("%s reduce %d: %dx%d", name, reduce, p.Width(), p.Height())
			}
		}
	}
}

func (s suite) destination(t *testing.T) {
	d := s.decoder(t)
	j := good(t, 1)
	want := rows(t, decode(t, d, j))
	dst := microtome.NewHostPixels(make([]byte, 64*48*3), 64, 48, 3, nil)
	j.Dst = dst
	if got := decode(t, d, j); got != microtome.Pixels(dst) || !bytes.Equal(rows(t, got), want) {
		t.Error("the destination was not filled")
	}
	j.Dst = microtome.NewHostPixels(make([]byte, 64*47*3), 64, 47, 3, nil)
	fails(t, d, j, microtome.ErrMalformed)
}

func (s suite) concurrency(t *testing.T) {
	d := s.decoder(t)
	jobs := make([]microtome.Job, 6)
	want := make([][]byte, len(jobs))
	for i := range jobs {
		jobs[i] = good(t, uint64(i))
		want[i] = rows(t, decode(t, d, jobs[i]))
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for range 20 {
				for i, r := range d.DecodeBatch(context.Background(), jobs[:1+g%len(jobs)]) {
					if r.Err != nil || !bytes.Equal(rows(t, r.Pixels), want[i]) {
						t.Errorf("job %d: other pixels, or %v", i, r.Err)
						return
					}
					r.Pixels.Release()
				}
			}
		})
	}
	all.Wait()
}

func (s suite) callerLeft(t *testing.T) {
	d := s.decoder(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, r := range d.DecodeBatch(ctx, []microtome.Job{good(t, 1), good(t, 2)}) {
		if !errors.Is(r.Err, context.Canceled) {
			t.Errorf("error %v", r.Err)
		}
	}
}
