package microtome

import (
	"context"
	"image"
)

// DataType is the type of one sample.
type DataType uint8

// The sample types. Only Uint8 leaves the CPU decoders.
const (
	Uint8 DataType = iota
	Float16
	BFloat16
	Float32
)

// Bytes is the size of one sample.
func (t DataType) Bytes() int { return [...]int{1, 2, 2, 4}[t] }

func (t DataType) String() string {
	return [...]string{"uint8", "float16", "bfloat16", "float32"}[t]
}

// Pixels is a decoded image: rows of interleaved samples, in host or device
// memory.
//
// It is reference counted: whoever got it from a call owns one reference and
// calls Release once; Retain adds one. Reading is safe from many goroutines;
// nobody writes to pixels that another may read.
type Pixels interface {
	Width() int
	Height() int
	Channels() int // 1 grey, 3 RGB, 4 RGBA (not premultiplied)
	Type() DataType
	// Device is "cpu", or the device that holds the memory, such as "nvidia:0".
	Device() string
	// Bytes is what it costs a cache to keep it.
	Bytes() int64
	// Host returns the rows when they lie in host memory; ok is false when
	// they do not.
	Host() (pix []byte, stride int, ok bool)
	Retain()
	Release()
}

// Priority orders the decode queue: viewers before samplers before background
// work.
type Priority uint8

// The priorities, most urgent first.
const (
	PriorityViewer Priority = iota
	PrioritySampler
	PriorityBackground
)

// Job asks for the pixels of one tile.
type Job struct {
	Tile Tile
	// Crop is the part wanted, in the tile's own pixels; empty means the whole
	// visible part. The pixels of a crop equal those of the whole, bit for bit.
	Crop image.Rectangle
	// Reduce asks for 1/2, 1/4 or 1/8 of the size (as 1, 2, 3) by the codec's
	// own scaling. For viewer tiles only; such pixels are not exact. The answer
	// is ceil(n / 2^Reduce) on each side, and Crop must be empty.
	Reduce int
	// Dst, when not nil, receives the pixels (its size must fit) and is
	// returned, retained, as the Result's.
	Dst      Pixels
	Priority Priority
	// Urgency, when not nil, stands in for Priority and may be raised while the
	// job waits.
	Urgency *Urgency
}

// Result answers one Job. Exactly one of Pixels and Err is set.
type Result struct {
	Pixels Pixels
	Err    error
}

// Decoder turns tiles into 8-bit grey or RGB pixels.
//
// DecodeBatch may be called at once by many; it blocks until every job has its
// result, in order. Jobs fail alone: ErrCorrupt for a stream that libjpeg-turbo
// would warn of, ErrUnsupported naming what it is, ErrLimit when its pixels
// exceed the limit, ErrBusy when the queue is full, ctx's error when the caller
// left before the job began. It is safe to ask again.
type Decoder interface {
	DecodeBatch(ctx context.Context, jobs []Job) []Result
	// CanReduce says whether Job.Reduce is honoured for a codec.
	CanReduce(c Codec) bool
	// Name says what decodes: "libjpeg-turbo 2.1.5", for info and metrics.
	Name() string
	Close() error
}

// DecodeStats are what a decoder counted since it was made, and what it does now.
type DecodeStats struct {
	Full, Partial, Reduced int64 // tiles decoded whole, in part, at a fraction of their size
	Encoded, Cropped       int64 // pictures encoded, stored tiles cropped without decoding
	Corrupt                int64 // streams that broke their format
	Limited                int64 // tiles over the decoder's limit of pixels
	Busy                   int64 // sampler jobs refused
	Dropped                int64 // jobs whose caller left before they began
	Running, Waiting       int   // now
	// Unsupported counts by reason, such as "SOF progressive (SOF2)". Reasons
	// beyond the first 64 are counted as "other".
	Unsupported map[string]int64
}

// Format is an encoding of an answer.
type Format uint8

// The answer formats.
const (
	FormatJPEG Format = iota
	FormatPNG
	FormatWebP
	FormatRaw // rows of samples, no header
	FormatNPY
)

// EncodeOptions choose how pixels are encoded. The zero value is a good one.
type EncodeOptions struct {
	Format  Format
	Quality int    // JPEG and WebP, 1 to 100; 0 means 80
	ICC     []byte // embedded when not nil
}

// Encoder turns host pixels into an encoded image.
//
// Encode may be called at once by many. It returns ErrUnsupported for a format
// that it was built without.
type Encoder interface {
	Encode(ctx context.Context, p Pixels, o EncodeOptions) ([]byte, error)
	// CropJPEG cuts a stored JPEG tile to its visible part without decoding it
	// (whole MCUs are kept bit for bit). It returns ErrUnsupported for what is
	// no baseline JPEG.
	CropJPEG(ctx context.Context, t Tile) ([]byte, error)
}
