package tiff

// Tags (TIFF 6.0, its technical notes, and the private ones that slides use).
const (
	NewSubfileType            = 254
	SubfileType               = 255
	ImageWidth                = 256
	ImageLength               = 257
	BitsPerSample             = 258
	Compression               = 259
	PhotometricInterpretation = 262
	FillOrder                 = 266
	DocumentName              = 269
	ImageDescription          = 270
	Make                      = 271
	Model                     = 272
	StripOffsets              = 273
	Orientation               = 274
	SamplesPerPixel           = 277
	RowsPerStrip              = 278
	StripByteCounts           = 279
	XResolution               = 282
	YResolution               = 283
	PlanarConfiguration       = 284
	PageName                  = 285
	XPosition                 = 286
	YPosition                 = 287
	ResolutionUnit            = 296
	PageNumber                = 297
	Software                  = 305
	DateTime                  = 306
	Artist                    = 315
	HostComputer              = 316
	Predictor                 = 317
	ColorMap                  = 320
	TileWidth                 = 322
	TileLength                = 323
	TileOffsets               = 324
	TileByteCounts            = 325
	SubIFDs                   = 330
	ExtraSamples              = 338
	SampleFormat              = 339
	JPEGTables                = 347
	YCbCrSubSampling          = 530
	ReferenceBlackWhite       = 532
	XMP                       = 700
	ImageDepth                = 32997
	Copyright                 = 33432
	ICCProfile                = 34675
)

// Compression values.
const (
	compressionNone               = 1
	compressionLZW                = 5
	compressionOldJPEG            = 6
	compressionJPEG               = 7
	compressionDeflate            = 8
	compressionDeflateOld         = 32946
	compressionPackBits           = 32773
	compressionAperioYCbCr        = 33003
	compressionAperioRGB          = 33005
	compressionJPEG2000           = 34712
	compressionZstd               = 50000
	photometricWhiteIsZero        = 0
	photometricBlackIsZero        = 1
	photometricRGB                = 2
	photometricPalette            = 3
	photometricYCbCr              = 6
	planarChunky                  = 1
	planarSeparate                = 2
	sampleFormatUint              = 1
	predictorNone                 = 1
	predictorHorizontal           = 2
	fillOrderMSB                  = 1
	fillOrderLSB                  = 2
	wholeImage             uint64 = 1<<32 - 1 // RowsPerStrip's default
)

// Type is a field type (TIFF 6.0 §2; 13 is IFD, 16 to 18 are BigTIFF's).
type Type uint16

// The field types.
const (
	Byte Type = iota + 1
	ASCII
	Short
	Long
	Rational
	SByte
	Undefined
	SShort
	SLong
	SRational
	Float
	Double
	IFD
	_
	_
	Long8
	SLong8
	IFD8
)

// size is the bytes of one value, 0 for a type that is unknown.
func (t Type) size() int64 {
	switch t {
	case Byte, ASCII, SByte, Undefined:
		return 1
	case Short, SShort:
		return 2
	case Long, SLong, Float, IFD:
		return 4
	case Rational, SRational, Double, Long8, SLong8, IFD8:
		return 8
	}
	return 0
}
