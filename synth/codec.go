package synth

import (
	"github.com/microtome/microtome/synth/j2kenc"
	"github.com/microtome/microtome/synth/jpegenc"
	"github.com/microtome/microtome/synth/tilecodec"
)

// TIFF photometric interpretations.
const (
	photometricGray  = 1
	photometricRGB   = 2
	photometricYCbCr = 6
)

// compression is the codec's TIFF compression number; 0 for an unknown codec.
func (c Codec) compression() int {
	switch c {
	case JPEG, JPEGRGB:
		return 7
	case J2KYCbCr:
		return 33003
	case J2KRGB:
		return 33005
	case J2K:
		return 34712
	case Raw:
		return tilecodec.None
	case Deflate:
		return tilecodec.Deflate
	case LZW:
		return tilecodec.LZWCode
	case PackBits:
		return tilecodec.PackBitsCode
	case Zstd:
		return tilecodec.Zstd
	}
	return 0
}

// tileEncoder turns a cell's pixels into its bytes. One goroutine each.
type tileEncoder struct {
	codec     Codec
	channels  int
	predictor bool
	jpeg      *jpegenc.Encoder
}

func newTileEncoder(s Spec, channels int) (*tileEncoder, error) {
	e := &tileEncoder{codec: s.Codec, channels: channels, predictor: s.Predictor}
	if s.Codec != JPEG && s.Codec != JPEGRGB {
		return e, nil
	}
	o := jpegenc.Options{Quality: s.Quality, Sampling: s.Sampling, Restart: s.Restart, Abbreviated: !s.WholeStreams}
	switch {
	case channels == 1:
		o.Color = jpegenc.Gray
	case s.Codec == JPEGRGB:
		o.Color = jpegenc.RGB
	}
	var err error
	e.jpeg, err = jpegenc.New(o)
	return e, err
}

// tables is the content of tag 347, nil where there is none.
func (e *tileEncoder) tables(s Spec) []byte {
	if e.jpeg == nil || s.WholeStreams {
		return nil
	}
	return e.jpeg.Tables()
}

// photometric is tag 262 for this codec.
func (e *tileEncoder) photometric() uint16 {
	switch {
	case e.channels == 1:
		return photometricGray
	case e.codec == JPEG:
		return photometricYCbCr
	}
	return photometricRGB
}

// encode compresses w*h pixels of e's channels; planar ones come one channel at
// a time.
func (e *tileEncoder) encode(pix []byte, w, h, channels int) ([]byte, error) {
	switch e.codec {
	case JPEG, JPEGRGB:
		return e.jpeg.Encode(nil, pix, w, h, w*channels)
	case J2K, J2KRGB: // transformed or not, the components are RGB
		return j2kenc.Encode(pix, w, h, channels, j2kenc.Options{Transform: channels == 3})
	case J2KYCbCr:
		return j2kenc.Encode(toYCbCr(pix), w, h, channels, j2kenc.Options{})
	}
	return tilecodec.Encode(e.codec.compression(), pix, w, channels, e.predictor)
}

// toYCbCr is the picture with JFIF's full-range components, as compression 33003
// stores them.
func toYCbCr(rgb []byte) []byte {
	out := make([]byte, len(rgb))
	for i := 0; i+2 < len(rgb); i += 3 {
		r, g, b := int(rgb[i]), int(rgb[i+1]), int(rgb[i+2])
		out[i] = uint8((19595*r + 38470*g + 7471*b + 1<<15) >> 16)
		out[i+1] = uint8((-11059*r - 21709*g + 32768*b + 128<<16 + 1<<15 - 1) >> 16)
		out[i+2] = uint8((32768*r - 27439*g - 5329*b + 128<<16 + 1<<15 - 1) >> 16)
	}
	return out
}
