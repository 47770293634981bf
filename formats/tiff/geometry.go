package tiff

import (
	"errors"
	"fmt"
	"math"

	"github.com/microtome/microtome"
)

// Strips whose pixels need more bytes than these are cut into bands. A
// compressed strip is decoded from its top for every band, so its bands are
// larger.
const (
	bandBytes           = 4 << 20
	compressedBandBytes = 32 << 20
	maxBandRows         = 1 << 14
	// maxStripPixels keeps products of strip sizes far from overflow.
	maxStripPixels = 1 << 40
)

// maxTileSide bounds TileWidth and TileLength; it is more than any decoder
// takes.
const maxTileSide = 1 << 20

// Geometry is how a directory's image is stored.
type Geometry struct {
	// Grid describes the cells. With planes stored apart Samples is 1 and
	// Color is grey.
	microtome.Grid
	Tiled bool
	// Planes is SamplesPerPixel when each sample is stored apart
	// (PlanarConfiguration 2), else 1.
	Planes int
	// StripRows is RowsPerStrip cut to the image, 0 for tiles. It is a multiple
	// of Grid.TileHeight: larger where strips are cut into bands.
	StripRows int
	// Compression is the tag's value.
	Compression uint64
	Predictor   int
	FillOrder   int
}

// Grid is the image's grid when its samples lie together; planes stored apart
// are Unsupported.
func (d *Dir) Grid() (microtome.Grid, error) {
	g, err := d.Geometry()
	if err == nil && g.Planes > 1 {
		err = unsupported("PlanarConfiguration", planarSeparate)
	}
	if err != nil {
		return microtome.Grid{}, err
	}
	return g.Grid, nil
}

// Geometry describes the image, or says by tag and value why it can't be read:
// ErrCorrupt, ErrLimit or Unsupported. Once found it is remembered.
func (d *Dir) Geometry() (Geometry, error) {
	if g := d.known.Load(); g != nil {
		return *g, nil
	}
	var g Geometry
	for _, step := range []func(*Geometry) error{d.size, d.samples, d.coding, d.color, d.layout} {
		if err := step(&g); err != nil {
			return Geometry{}, err
		}
	}
	d.known.Store(&g)
	return g, nil
}

// number is a tag's first value, or what it defaults to.
func (d *Dir) number(tag uint16, otherwise uint64) (uint64, error) {
	v, ok, err := d.Uint(tag)
	if err == nil && !ok {
		v = otherwise
	}
	return v, err
}

func (d *Dir) size(g *Geometry) error {
	w, errW := d.number(ImageWidth, 0)
	h, errH := d.number(ImageLength, 0)
	switch err := errors.Join(errW, errH); {
	case err != nil:
		return err
	case w == 0 || h == 0:
		return corrupt("ImageWidth %d, ImageLength %d", w, h)
	case w > math.MaxInt32 || h > math.MaxInt32:
		return overLimit("ImageWidth %d, ImageLength %d", w, h)
	}
	g.Width, g.Height = int64(w), int64(h)
	if depth, err := d.number(ImageDepth, 1); err != nil || depth != 1 {
		return orUnsupported(err, "ImageDepth", depth)
	}
	return nil
}

func orUnsupported(err error, tag string, value any) error {
	if err != nil {
		return err
	}
	return unsupported(tag, value)
}

func (d *Dir) samples(g *Geometry) error {
	n, err := d.number(SamplesPerPixel, 1)
	if err != nil {
		return err
	}
	if n == 0 {
		return corrupt("SamplesPerPixel 0")
	}
	planar, err := d.number(PlanarConfiguration, planarChunky)
	if err != nil || planar != planarChunky && planar != planarSeparate {
		return orUnsupported(err, "PlanarConfiguration", planar)
	}
	g.Planes, g.Samples, g.Bits = 1, int(min(n, math.MaxInt16)), 8
	if planar == planarSeparate {
		g.Planes, g.Samples = g.Samples, 1
	}
	if n > 1<<10 || g.Samples > 4 {
		return unsupported("SamplesPerPixel", n)
	}
	if err := d.every(BitsPerSample, "BitsPerSample", 1, 8); err != nil {
		return err
	}
	return d.every(SampleFormat, "SampleFormat", sampleFormatUint, sampleFormatUint)
}

// every checks that all of a tag's values are want.
func (d *Dir) every(tag uint16, name string, otherwise, want uint64) error {
	v, err := d.Uints(tag, 1<<12)
	if err != nil {
		return err
	}
	if v == nil {
		v = []uint64{otherwise}
	}
	for _, v := range v {
		if v != want {
			return unsupported(name, v)
		}
	}
	return nil
}

func (d *Dir) coding(g *Geometry) error {
	var err error
	if g.Compression, err = d.number(Compression, compressionNone); err != nil {
		return err
	}
	g.Predictor, g.FillOrder = predictorNone, fillOrderMSB
	switch g.Compression {
	case compressionNone:
		g.Codec = microtome.CodecNone
	case compressionLZW:
		g.Codec = microtome.CodecLZW
	case compressionJPEG:
		g.Codec = microtome.CodecJPEG
		return nil
	case compressionDeflate, compressionDeflateOld:
		g.Codec = microtome.CodecDeflate
	case compressionPackBits:
		g.Codec = microtome.CodecPackBits
	case compressionZstd:
		g.Codec = microtome.CodecZstd
	case compressionAperioYCbCr, compressionAperioRGB, compressionJPEG2000:
		g.Codec = microtome.CodecJPEG2000
		return nil
	default:
		return unsupported("Compression", g.Compression)
	}
	order, err := d.number(FillOrder, fillOrderMSB)
	if err != nil || order != fillOrderMSB && order != fillOrderLSB {
		return orUnsupported(err, "FillOrder", order)
	}
	g.FillOrder = int(order)
	if g.Codec == microtome.CodecNone || g.Codec == microtome.CodecPackBits {
		return nil // TIFF 6.0 §14: only compressions that say so have a predictor
	}
	predictor, err := d.number(Predictor, predictorNone)
	if err != nil || predictor != predictorNone && predictor != predictorHorizontal {
		return orUnsupported(err, "Predictor", predictor)
	}
	g.Predictor = int(predictor)
	return nil
}

// color reads PhotometricInterpretation. A missing one is grey or RGB by the
// number of samples, as libtiff takes it.
func (d *Dir) color(g *Geometry) error {
	samples := g.Samples * g.Planes
	p, ok, err := d.Uint(PhotometricInterpretation)
	if err != nil {
		return err
	}
	switch {
	case !ok && samples >= 3:
		p = photometricRGB
	case !ok:
		p = photometricBlackIsZero
	}
	switch {
	case g.Compression == compressionAperioYCbCr && samples == 3:
		g.Color = microtome.ColorYCbCr
	case g.Compression == compressionAperioRGB && samples == 3:
		g.Color = microtome.ColorRGB
	case p == photometricWhiteIsZero && g.Samples <= 2:
		g.Color = microtome.ColorGrayWhite
	case p == photometricBlackIsZero && g.Samples <= 2:
		g.Color = microtome.ColorGray
	case g.Planes > 1 && (p == photometricRGB || p == photometricYCbCr && g.Codec != microtome.CodecNone):
		g.Color = microtome.ColorGray
	case p == photometricRGB && samples >= 3:
		g.Color = microtome.ColorRGB
	case p == photometricPalette && samples == 1 && g.Codec != microtome.CodecJPEG:
		g.Color = microtome.ColorPalette
		_, err := d.palette()
		return err
	case p == photometricYCbCr && g.Samples == 3 && (g.Codec == microtome.CodecJPEG || g.Codec == microtome.CodecJPEG2000):
		g.Color = microtome.ColorYCbCr
	default:
		return unsupported("PhotometricInterpretation", fmt.Sprintf("%d (with %d samples, Compression %d)", p, samples, g.Compression))
	}
	// Extra samples (alpha) are skipped where samples are plain bytes.
	if g.Samples%2 == 0 && (g.Codec == microtome.CodecJPEG || g.Codec == microtome.CodecJPEG2000) {
		return unsupported("SamplesPerPixel", fmt.Sprintf("%d (with Compression %d)", g.Samples, g.Compression))
	}
	return nil
}

// palette is the ColorMap (TIFF 6.0 §5): 256 reds, greens and blues of 16 bits.
func (d *Dir) palette() (*[256]microtome.RGB, error) {
	v, err := d.Uints(ColorMap, 3*256)
	if err != nil {
		return nil, err
	}
	if len(v) != 3*256 {
		return nil, corrupt("tag %d: %d values", ColorMap, len(v))
	}
	shift := 0 // some writers store 8 bits; libtiff looks for it so
	for _, v := range v {
		if v > 255 {
			shift = 8
		}
	}
	p := new([256]microtome.RGB)
	for i := range p {
		p[i] = microtome.RGB{R: uint8(v[i] >> shift), G: uint8(v[256+i] >> shift), B: uint8(v[512+i] >> shift)}
	}
	return p, nil
}

// layout finds the cells: tiles (TIFF 6.0 §15), or strips as full-width tiles.
func (d *Dir) layout(g *Geometry) error {
	if d.Has(TileWidth) || d.Has(TileLength) || d.Has(TileOffsets) {
		w, errW := d.number(TileWidth, 0)
		h, errH := d.number(TileLength, 0)
		switch err := errors.Join(errW, errH); {
		case err != nil:
			return err
		case w == 0 || h == 0 || !d.Has(TileOffsets) && !d.Has(StripOffsets):
			return corrupt("TileWidth %d, TileLength %d, %d TileOffsets", w, h, d.Count(TileOffsets))
		case w > maxTileSide || h > maxTileSide:
			return overLimit("TileWidth %d, TileLength %d", w, h)
		}
		g.Tiled, g.TileWidth, g.TileHeight = true, int(w), int(h)
	} else if err := d.strips(g); err != nil {
		return err
	}
	cols := (g.Width + int64(g.TileWidth) - 1) / int64(g.TileWidth)
	rows := (g.Height + int64(g.TileHeight) - 1) / int64(g.TileHeight)
	if cols*rows > math.MaxInt32 {
		return overLimit("%d x %d tiles", cols, rows)
	}
	g.Cols, g.Rows = int(cols), int(rows)
	return nil
}

func (d *Dir) strips(g *Geometry) error {
	if !d.Has(StripOffsets) {
		return corrupt("no StripOffsets or TileOffsets")
	}
	rows, err := d.number(RowsPerStrip, wholeImage)
	if err != nil {
		return err
	}
	if rows == 0 {
		return corrupt("RowsPerStrip 0")
	}
	g.StripRows = int(min(rows, uint64(g.Height)))
	if g.Width*int64(g.StripRows) > maxStripPixels {
		return overLimit("strips of %d x %d", g.Width, g.StripRows)
	}
	g.TileWidth = int(g.Width)
	limit := int64(bandBytes)
	if g.Codec != microtome.CodecNone {
		limit = compressedBandBytes
	}
	g.TileHeight = bandRows(int64(g.StripRows), g.Height, g.Width*int64(g.Samples), limit)
	if int64(g.StripRows) >= g.Height {
		// The only strip may end in a band that is not full.
		g.StripRows = (g.StripRows + g.TileHeight - 1) / g.TileHeight * g.TileHeight
	}
	return nil
}

// bandRows is how many rows of a strip make a cell: all, or for a strip over
// the limit the most that fit. Cells are of one size, so bands divide the strip
// evenly unless it is the only one.
func bandRows(stripRows, height, rowBytes, limit int64) int {
	if stripRows*rowBytes <= limit {
		return int(stripRows)
	}
	most := min(max(1, limit/rowBytes), maxBandRows)
	if stripRows >= height {
		return int(min(most, stripRows))
	}
	for n := most; n > most/8 && n > 1; n-- {
		if stripRows%n == 0 {
			return int(n)
		}
	}
	return int(stripRows)
}
