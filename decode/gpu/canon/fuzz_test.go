package canon_test

import (
	"bytes"
	"errors"
	"regexp"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/canon"
	header "github.com/microtome/microtome/decode/sof"
	"github.com/microtome/microtome/formats/tiff/jpegstream"
	"github.com/microtome/microtome/synth/jpegenc"
)

// allocated is how many bytes the process took so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// FuzzParse: no input panics or takes much memory, and what is accepted has one
// canonical form.
func FuzzParse(f *testing.F) {
	for _, c := range table(f) {
		f.Add(c.tile.Data, []byte(nil), byte(c.tile.Color), c.tile.FirstRow == 0 && c.tile.Codec == microtome.CodecJPEG)
	}
	enc, err := jpegenc.New(jpegenc.Options{Sampling: jpegenc.S420, Abbreviated: true})
	if err != nil {
		f.Fatal(err)
	}
	data, err := enc.Encode(nil, scene(64, 64, 3), 64, 64, 64*3)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, enc.Tables(), byte(microtome.ColorYCbCr), true)
	list := reasons(f)
	f.Fuzz(func(t *testing.T, data, tables []byte, color byte, whole bool) {
		if len(tables) > 0 {
			var err error
			if data, err = jpegstream.Splice(tables, data); err != nil {
				return
			}
		}
		tile := microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: microtome.Color(color % 5), Width: 64, Height: 64, Samples: 3, Bits: 8}
		if h, err := header.Read(data); err == nil {
			tile.Width, tile.Height = h.Width, h.Height
		}
		if tile.StreamHeight = tile.Height; !whole {
			tile.StreamHeight++
		}
		checkParse(t, tile, list)
	})
}

func checkParse(t *testing.T, tile microtome.Tile, list []*regexp.Regexp) {
	// What else runs in the process takes memory too.
	const others = 1 << 20
	kept := bytes.Clone(tile.Data)
	was := allocated()
	var s canon.Stream
	err := canon.Parse(&tile, &s)
	if n := allocated() - was; n > uint64(2*len(tile.Data)+others) {
		t.Errorf("%d bytes taken for %d", n, len(tile.Data))
	}
	if !bytes.Equal(kept, tile.Data) {
		t.Error("the tile's bytes were written")
	}
	if err != nil {
		known := slices.ContainsFunc(list, func(r *regexp.Regexp) bool { return r.MatchString(err.Error()) })
		if !known || !errors.Is(err, microtome.ErrUnsupported) {
			t.Errorf("refused with %v", err)
		}
		return
	}
	// At most each table gets a segment of its own.
	if s.Size() > len(tile.Data)+canon.Slack+8*4 {
		t.Errorf("%d bytes of %d", s.Size(), len(tile.Data))
	}
	again := rebuilt(t, &s, tile)
	var second canon.Stream
	if err := canon.Parse(&again, &second); err != nil {
		t.Fatalf("the canonical stream: %v", err)
	}
	if twice := rebuilt(t, &second, again); !bytes.Equal(twice.Data, again.Data) {
		t.Error("the canonical stream's canonical stream is another")
	}
	if s.MCUs != second.MCUs || s.Sampling != second.Sampling || s.ScanLen != second.ScanLen || s.Restart != second.Restart {
		t.Errorf("%+v became %+v", s, second)
	}
}
