package decodetest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth/jpegenc"
)

// badStreams (C8, C9, C11): each is an error of its kind, and the decoder goes
// on working.
func (s suite) badStreams(t *testing.T) {
	d := s.decoder(t)
	data := stream(t, 64, 48, jpegenc.Options{}, 1)
	random := make([]byte, 3000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range random {
		random[i] = byte(rng.IntN(256))
	}
	noSOI := bytes.Clone(data)
	noSOI[0] = 0x11
	abbreviated := stream(t, 64, 48, jpegenc.Options{Abbreviated: true}, 1)
	cmyk := stream(t, 64, 48, jpegenc.Options{Color: jpegenc.CMYK}, 1)
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"nothing": {nil, microtome.ErrCorrupt}, "random": {random, microtome.ErrCorrupt},
		"first byte overwritten": {noSOI, microtome.ErrCorrupt},
		"half":                   {data[:len(data)/2], microtome.ErrCorrupt}, "head only": {data[:100], microtome.ErrCorrupt},
		"tables missing": {abbreviated, microtome.ErrCorrupt},
		"other size":     {stream(t, 64, 40, jpegenc.Options{}, 1), microtome.ErrCorrupt},
		"progressive":    {withSOF(data, 0xC2, 8), microtome.ErrUnsupported},
		"lossless":       {withSOF(data, 0xC3, 8), microtome.ErrUnsupported},
		"arithmetic":     {withSOF(data, 0xC9, 8), microtome.ErrUnsupported},
		"12 bits":        {withSOF(data, 0xC1, 12), microtome.ErrUnsupported},
		"CMYK":           {cmyk, microtome.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, d, microtome.Job{Tile: tile(c.data, 64, 48, microtome.ColorYCbCr)}, c.want)
			decode(t, d, good(t, 1))
		})
	}
	over := good(t, 1)
	over.Tile.Width, over.Tile.VisibleWidth = 1<<30, 1<<30
	fails(t, d, over, microtome.ErrLimit)
}

// oddOnes (C12): a bad job between good ones takes none of them down.
func (s suite) oddOnes(t *testing.T) {
	d := s.decoder(t)
	jobs := make([]microtome.Job, 32)
	for i := range jobs {
		jobs[i] = good(t, uint64(i))
	}
	base := jobs[0].Tile.Data
	jobs[3].Tile.Data = withSOF(base, 0xC2, 8)
	jobs[7].Tile.Data = withSOF(base, 0xC1, 12)
	jobs[11].Tile.Data = withSOF(base, 0xC9, 8)
	jobs[13].Tile.Data = base[:len(base)/2]
	jobs[17].Tile.Data = nil
	big := append([]byte{0xFF, 0xD8, 0xFF, 0xE1, 0xFF, 0xFF}, make([]byte, 65533)...)
	jobs[19].Tile.Data = append(big, jobs[19].Tile.Data[2:]...)
	jobs[23].Tile = tile(stream(t, 8, 8, jpegenc.Options{}, 23), 8, 8, microtome.ColorYCbCr)
	jobs[29].Tile = tile(stream(t, 64, 48, jpegenc.Options{Sampling: jpegenc.S411}, 29), 64, 48, microtome.ColorYCbCr)
	bad := map[int]error{3: microtome.ErrUnsupported, 7: microtome.ErrUnsupported, 11: microtome.ErrUnsupported,
		13: microtome.ErrCorrupt, 17: microtome.ErrCorrupt}
	for i, r := range d.DecodeBatch(context.Background(), jobs) {
		if !errors.Is(r.Err, bad[i]) {
			t.Errorf("job %d: %v, want %v", i, r.Err, bad[i])
		}
		if r.Err == nil {
			near(t, r.Pixels, scene(jobs[i].Tile.Width, jobs[i].Tile.Height, 3, uint64(i)), 12)
			r.Pixels.Release()
		}
	}
}

// noOldPixel (A20): memory is used again, so a broken tile after a good one must
// show nothing of it: not in an answer, and not in what it leaves.
func (s suite) noOldPixel(t *testing.T) {
	d := s.decoder(t)
	for i := range uint64(20) {
		j := good(t, i)
		r := d.DecodeBatch(context.Background(), []microtome.Job{j})[0]
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		first := rows(t, r.Pixels)
		r.Pixels.Release()
		broken := good(t, i+100)
		broken.Tile.Data = broken.Tile.Data[:len(broken.Tile.Data)*3/4]
		if r := d.DecodeBatch(context.Background(), []microtome.Job{broken})[0]; r.Err == nil {
			t.Fatal("a truncated tile was shown")
		}
		other := good(t, i+200)
		if got := rows(t, decode(t, d, other)); bytes.Equal(got, first) {
			t.Fatal("another tile's pixels")
		}
		near(t, decode(t, d, other), scene(64, 48, 3, i+200), 12)
	}
}

// missingEOI (C9): the pixels are whole without it, and nothing after it counts.
func (s suite) missingEOI(t *testing.T) {
	d := s.decoder(t)
	j := good(t, 1)
	want := rows(t, decode(t, d, j))
	data := j.Tile.Data
	for name, b := range map[string][]byte{
		"bytes after EOI": append(bytes.Clone(data), 1, 2, 3, 0xFF, 0xD8, 0),
		"no EOI":          data[:len(data)-2],
	} {
		if name == "no EOI" && !s.o.Exact {
			continue
		}
		j.Tile.Data = b
		if !bytes.Equal(rows(t, decode(t, d, j)), want) {
			t.Errorf("%s: other pixels", name)
		}
	}
}
