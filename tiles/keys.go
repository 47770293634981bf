package tiles

import (
	"hash/maphash"
	"math"

	"github.com/microtome/microtome"
)

// tileKey names the pixels of one tile. Its generation names the slide's file.
type tileKey struct {
	generation string
	name       string // of an associated image; "" for a level
	level      int32  // builtLevel and above: built by us
	plane      int32
	col, row   int32
	reduce     int8
	background microtome.RGB // of what an inherited tile still lacks
	crop       [4]int32      // min and max of a part; zero for a whole tile
	life       uint64        // of the device in whose memory the pixels lie
}

// question is what kind of answer a key names.
type question uint8

const (
	askStored question = iota
	askTile
	askView
	askRegion
	askAssociated
	askThumbnail
)

// answerKey names an answer. What a question does not use is zero.
type answerKey struct {
	generation    string
	name          string
	ask           question
	format        microtome.Format
	quality       int8
	icc           bool
	background    microtome.RGB
	plane         int32
	level         int32
	x, y          int64
	width, height int32
	step          [2]uint64
	virtual       [2]int64
}

// The seeds are of this process; keys never leave it.
var (
	tileSeed   = maphash.MakeSeed()
	answerSeed = maphash.MakeSeed()
)

// mix folds n into h (the multiplier is 2^64 over the golden ratio, made odd).
func mix(h, n uint64) uint64 {
	h = (h ^ n) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

func (k tileKey) hash() uint64 {
	h := maphash.String(tileSeed, k.generation)
	if k.name != "" {
		h = mix(h, maphash.String(tileSeed, k.name))
	}
	h = mix(h, uint64(k.level)<<40^uint64(k.plane)<<8^uint64(k.reduce))
	h = mix(h, uint64(uint32(k.crop[0]))<<32|uint64(uint32(k.crop[1])))
	return mix(h, uint64(uint32(k.col))<<32|uint64(uint32(k.row)))
}

func (k answerKey) hash() uint64 {
	h := maphash.String(answerSeed, k.generation)
	if k.name != "" {
		h = mix(h, maphash.String(answerSeed, k.name))
	}
	h = mix(h, uint64(k.ask)<<56^uint64(k.format)<<48^uint64(uint8(k.quality))<<40^uint64(uint32(k.plane))<<8^uint64(k.level))
	h = mix(h, uint64(k.x)<<32^uint64(k.y))
	h = mix(h, uint64(uint32(k.width))<<32|uint64(uint32(k.height)))
	return mix(h, k.step[0]^uint64(k.virtual[0]))
}

// pixelKey fills in what all rendered answers share.
func (r *Reader) pixelKey(info *microtome.Info, ask question, plane int, o *PixelOptions) answerKey {
	return answerKey{
		generation: info.Generation.ID, ask: ask, plane: int32(plane),
		format: o.Format, quality: int8(r.quality(o)), icc: o.ICC != "",
		background: r.background(info, o),
	}
}

// quality is 1 to 100, and 0 for formats that have none.
func (r *Reader) quality(o *PixelOptions) int {
	if o.Format != microtome.FormatJPEG && o.Format != microtome.FormatWebP {
		return 0
	}
	if o.Quality <= 0 {
		return min(r.o.Quality, 100)
	}
	return min(o.Quality, 100)
}

// floatBits tells apart the scales of keys.
func floatBits(f float64) uint64 { return math.Float64bits(f) }
