package synth

import (
	"math"

	"github.com/microtome/microtome/synth/tiffw"
)

// The tags that are written (TIFF 6.0, Aperio's ImageDepth, ICC).
const (
	tagNewSubfileType  = 254
	tagWidth           = 256
	tagHeight          = 257
	tagBitsPerSample   = 258
	tagCompression     = 259
	tagPhotometric     = 262
	tagDescription     = 270
	tagStripOffsets    = 273
	tagOrientation     = 274
	tagSamplesPerPixel = 277
	tagRowsPerStrip    = 278
	tagStripCounts     = 279
	tagXResolution     = 282
	tagYResolution     = 283
	tagPlanar          = 284
	tagResolutionUnit  = 296
	tagPredictor       = 317
	tagTileWidth       = 322
	tagTileHeight      = 323
	tagTileOffsets     = 324
	tagTileCounts      = 325
	tagSubIFDs         = 330
	tagSampleFormat    = 339
	tagJPEGTables      = 347
	tagYCbCrSampling   = 530
	tagBlackWhite      = 532
	tagImageDepth      = 32997
	tagICC             = 34675
)

// imageDir is a directory with all that follows from the pixels' form.
func (wr *writer) imageDir(w, h, channels, compression int, photometric uint16) *tiffw.Dir {
	d := new(tiffw.Dir).Long(tagWidth, uint32(w)).Long(tagHeight, uint32(h))
	bits, format := make([]uint16, channels), make([]uint16, channels)
	for i := range bits {
		bits[i], format[i] = 8, 1
	}
	d.Short(tagBitsPerSample, bits...).Short(tagCompression, uint16(compression)).Short(tagPhotometric, photometric)
	d.Short(tagSamplesPerPixel, uint16(channels))
	if wr.s.Format == SVS {
		return d.Long(tagImageDepth, 1)
	}
	return d.Short(tagOrientation, 1).Short(tagSampleFormat, format...)
}

// levelDir describes a level whose cells lie at offsets.
func (wr *writer) levelDir(l Level, offsets, counts []uint64) *tiffw.Dir {
	e := wr.encoders[0]
	d := wr.imageDir(l.Width, l.Height, e.channels, wr.s.Codec.compression(), e.photometric())
	planar := uint16(1)
	if wr.s.Planar {
		planar = 2
	}
	d.Short(tagPlanar, planar)
	if wr.s.Format == SVS {
		d.Long(tagNewSubfileType, 0)
	} else if l.Downsample > 1 {
		d.Long(tagNewSubfileType, 1)
	}
	g := wr.grid(l)
	if g.strips {
		d.Long(tagRowsPerStrip, uint32(g.tileH))
		wr.offsets(d, tagStripOffsets, offsets)
		wr.offsets(d, tagStripCounts, counts)
	} else {
		d.Long(tagTileWidth, uint32(g.tileW)).Long(tagTileHeight, uint32(g.tileH))
		wr.offsets(d, tagTileOffsets, offsets)
		wr.offsets(d, tagTileCounts, counts)
	}
	if wr.s.Predictor {
		d.Short(tagPredictor, 2)
	}
	if t := e.tables(wr.s); t != nil {
		d.Undefined(tagJPEGTables, t)
	}
	if e.photometric() == photometricYCbCr {
		ycbcr(d, wr.s.Sampling.H, wr.s.Sampling.V)
	}
	if len(wr.s.ICC) > 0 && (l.Downsample == 1 || wr.s.Format == SVS) {
		d.Undefined(tagICC, wr.s.ICC)
	}
	if wr.s.MPP > 0 && wr.s.Format != SVS {
		wr.resolution(d)
	}
	return d
}

// ycbcr adds the tags that go with photometric 6. 2x2 is the default sampling
// and left out.
func ycbcr(d *tiffw.Dir, h, v int) {
	if h != 2 || v != 2 {
		d.Short(tagYCbCrSampling, uint16(h), uint16(v))
	}
	d.Rational(tagBlackWhite, 0, 1, 255, 1, 128, 1, 255, 1, 128, 1, 255, 1)
}

// resolution is pixels per centimetre of level 0, on every level as libvips
// writes it.
func (wr *writer) resolution(d *tiffw.Dir) {
	const den = 512
	num := uint32(math.Round(1e4 / wr.s.MPP * den))
	d.Rational(tagXResolution, num, den).Rational(tagYResolution, num, den).Short(tagResolutionUnit, 3)
}

// offsets adds file positions or sizes in the width that the file has.
func (wr *writer) offsets(d *tiffw.Dir, tag uint16, v []uint64) {
	if wr.s.Big {
		d.Long8(tag, v...)
		return
	}
	short := make([]uint32, len(v))
	for i, x := range v {
		short[i] = uint32(x)
	}
	d.Long(tag, short...)
}

// pyramid writes the levels of an RGB slide, or of the gray plane when the
// encoders are gray, chained or in SubIFDs.
func (wr *writer) pyramid(description string, plane int) error {
	if wr.s.planes() == 0 {
		plane = -1
	}
	var top *tiffw.Dir
	var below []uint64
	for i, l := range wr.levels {
		offsets, counts, err := wr.cells(l, plane)
		if err != nil {
			return err
		}
		d := wr.levelDir(l, offsets, counts)
		if i == 0 && description != "" {
			d.ASCII(tagDescription, description)
		}
		switch {
		case wr.s.Layout == Chain:
			wr.w.Dir(d)
		case i == 0:
			top = d
		default:
			below = append(below, uint64(wr.w.SubDir(d).Offset))
		}
	}
	if top == nil {
		return nil
	}
	if len(below) > 0 {
		wr.offsets(top, tagSubIFDs, below)
		last := &top.Entries[len(top.Entries)-1]
		last.Type = tiffw.IFD
		if wr.s.Big {
			last.Type = tiffw.IFD8
		}
	}
	wr.w.Dir(top)
	return nil
}

// cog writes every directory, then the data from the smallest level up.
func (wr *writer) cog() error {
	placed := make([]tiffw.Placed, len(wr.levels))
	for i, l := range wr.levels {
		none := make([]uint64, wr.grid(l).cells())
		d := wr.levelDir(l, none, none)
		if i == 0 && wr.description() != "" {
			d.ASCII(tagDescription, wr.description())
		}
		placed[i] = wr.w.Dir(d)
	}
	for i := len(wr.levels) - 1; i >= 0; i-- {
		offsets, counts, err := wr.cells(wr.levels[i], -1)
		if err != nil {
			return err
		}
		at, n := uint16(tagTileOffsets), uint16(tagTileCounts)
		if wr.s.RowsPerStrip > 0 {
			at, n = tagStripOffsets, tagStripCounts
		}
		wr.w.Patch(placed[i].Values[at], wr.words(offsets))
		wr.w.Patch(placed[i].Values[n], wr.words(counts))
	}
	return nil
}

func (wr *writer) words(v []uint64) (p []byte) {
	for _, x := range v {
		p = append(p, wr.w.Word(x)...)
	}
	return p
}
