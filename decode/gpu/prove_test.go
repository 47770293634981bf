//go:build cgo && linux

package gpu

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/microtome/microtome/synth/jpegenc"
)

var update = flag.Bool("update", false, "write the proof's tiles anew")

// busy is a picture that is hard on a decoder: gradients, sharp edges in full
// colours, and noise.
func busy(w, h, ch int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	pix := make([]byte, w*h*ch)
	for y := range h {
		for x := range w {
			for c := range ch {
				v := (x*(c+1) + y*(3-c)) & 255
				switch {
				case (x/16+y/16)%3 == 0:
					v = 255 * ((x>>c ^ y) & 1)
				case (x/32+y/8)%4 == 1:
					v = rng.IntN(256)
				case (x/24)%5 == 2:
					v = 255 * ((c + y/12) & 1)
				}
				pix[(y*w+x)*ch+c] = byte(v)
			}
		}
	}
	return pix
}

// proofs are the embedded tiles.
var proofs = map[string]struct {
	w, h, ch int
	o        jpegenc.Options
}{
	"rgb-444-240.jpg":     {240, 240, 3, jpegenc.Options{Color: jpegenc.RGB, Quality: 30}},
	"ycc-444-256.jpg":     {256, 256, 3, jpegenc.Options{Color: jpegenc.YCbCr, Quality: 75}},
	"ycc-422-256.jpg":     {256, 128, 3, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S422, Quality: 75}},
	"ycc-420-256.jpg":     {256, 256, 3, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420, Quality: 75}},
	"ycc-420-240.jpg":     {240, 240, 3, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420, Quality: 40}},
	"ycc-420-64.jpg":      {64, 192, 3, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420, Quality: 95}},
	"ycc-420-restart.jpg": {256, 128, 3, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420, Quality: 60, Restart: 5}},
	"ycc-440-256.jpg":     {128, 256, 3, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S440, Quality: 75}},
	"gray-256.jpg":        {256, 256, 1, jpegenc.Options{Color: jpegenc.Gray, Quality: 75}},
}

// The embedded tiles are what synth makes of them.
func TestProofTiles(t *testing.T) {
	for name, p := range proofs {
		enc, err := jpegenc.New(p.o)
		if err != nil {
			t.Fatal(err)
		}
		data, err := enc.Encode(nil, busy(p.w, p.h, p.ch, uint64(len(name))), p.w, p.h, p.w*p.ch)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("proof", name)
		if *update {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if old, err := os.ReadFile(path); err != nil || !bytes.Equal(old, data) {
			t.Errorf("%s is not what synth makes (%v): go test ./decode/gpu -run ProofTiles -update", path, err)
		}
	}
	if files, _ := proofTiles.ReadDir("proof"); len(files) != len(proofs) {
		t.Errorf("%d tiles are embedded, want %d", len(files), len(proofs))
	}
}
