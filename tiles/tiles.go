// Package tiles decides which pixels answer a question: a stored tile as it
// is, a rectangle of a viewer's virtual level, a region at any scale.
//
// The data path, from the outside in:
//
//	Stored, View, Region, …      the question's key is looked up in the answers
//	picture                      one stored (or built) image with its grid of tiles
//	picture.tile                 a tile's pixels, from the cache or decoded, once
//	assemble                     tiles are laid side by side into a rectangle
//	scaled                       … and area-filtered to the size asked for
//	encode                       … and encoded, and the answer is kept
//
// A stored tile that is exactly what was asked for skips all but the first.
// See [Reader.Stored], [Reader.View], [Reader.Region].
package tiles

import (
	"context"
	"errors"
	"fmt"
	"image"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/cache"
)

// Options configure a Reader. Decoder and Encoder are needed.
type Options struct {
	Decoder microtome.Decoder
	Encoder microtome.Encoder
	// Devices make batches of patches; a slide is always one device's.
	Devices []microtome.Device
	// AnswerBytes and PixelBytes are the budgets of the caches of answers and
	// of decoded tiles; 0 keeps none.
	AnswerBytes, PixelBytes int64
	// PyramidDir is where upper levels are kept for slides that lack them; ""
	// builds none (their small scales are answered with previews then).
	// PyramidBytes is its budget; 0 means 8 GiB.
	PyramidDir   string
	PyramidBytes int64
	// MaxPixels bounds an answer's size; a quarter of the pixels that may be
	// decoded for one. 0 means 64 Mi.
	MaxPixels int64
	// MakingBytes bounds what large answers and batches take while they are being
	// made, all callers together; 0 means 512 MiB. Batches is how many batches
	// are made at once; 0 means 64. Four times as many may wait for either; the
	// next is ErrBusy.
	MakingBytes int64
	Batches     int
	// Background is the colour of what is not stored, where neither the
	// question nor the slide says another.
	Background microtome.RGB
	// Quality is that of JPEG and WebP where the question gives none; 0 means 80.
	Quality int
}

// Reader answers questions about slides. Its methods may be called at once.
type Reader struct {
	o       Options
	answers *cache.Cache[answerKey, *Answer]
	regions *cache.Cache[answerKey, *Answer]        // a small part: a scan must not flush the viewers'
	pixels  *cache.Cache[tileKey, microtome.Pixels] // of viewers
	patches *cache.Cache[tileKey, microtome.Pixels] // of regions, which must not flush the viewers'
	// once loads what is not kept: parts of tiles, and what builds pyramids.
	once    *cache.Cache[tileKey, microtome.Pixels]
	touched touches
	ahead   *ahead
	making  *Budget   // in bytes
	batches *Budget   // in batches
	pyramid *pyramids // nil when none are built
	devices []*device
	count   counters
}

const (
	defaultMaxPixels    = 64 << 20
	defaultQuality      = 80
	defaultPyramidBytes = 8 << 30
	defaultMaking       = 512 << 20
	defaultBatches      = 64
)

// New makes a Reader.
func New(o Options) (*Reader, error) {
	if o.Decoder == nil || o.Encoder == nil {
		return nil, errors.New("tiles: Decoder and Encoder are needed")
	}
	if o.MaxPixels <= 0 {
		o.MaxPixels = defaultMaxPixels
	}
	if o.Quality <= 0 {
		o.Quality = defaultQuality
	}
	if o.PyramidBytes <= 0 {
		o.PyramidBytes = defaultPyramidBytes
	}
	if o.MakingBytes <= 0 {
		o.MakingBytes = defaultMaking
	}
	if o.Batches <= 0 {
		o.Batches = defaultBatches
	}
	r := &Reader{o: o, making: NewBudget(o.MakingBytes, 4*defaultBatches), batches: NewBudget(int64(o.Batches), 4*int64(o.Batches))}
	r.answers = newAnswerCache(o.AnswerBytes - o.AnswerBytes/8)
	r.regions = newAnswerCache(o.AnswerBytes / 8)
	r.pixels = newPixelCache(o.PixelBytes / 2)
	r.patches = newPixelCache(o.PixelBytes - o.PixelBytes/2)
	r.once = newPixelCache(0)
	for _, d := range o.Devices {
		r.devices = append(r.devices, newDevice(d))
	}
	r.ahead = newAhead(r)
	if o.PyramidDir != "" {
		p, err := newPyramids(r, o.PyramidDir, o.PyramidBytes)
		if err != nil {
			return nil, err
		}
		r.pyramid = p
	}
	return r, nil
}

func newAnswerCache(bytes int64) *cache.Cache[answerKey, *Answer] {
	return cache.New(cache.Options[answerKey, *Answer]{MaxBytes: bytes, Hash: answerKey.hash, Size: (*Answer).bytes})
}

func newPixelCache(bytes int64) *cache.Cache[tileKey, microtome.Pixels] {
	return cache.New(cache.Options[tileKey, microtome.Pixels]{
		MaxBytes: bytes, Hash: tileKey.hash, Size: microtome.Pixels.Bytes,
		Retain: microtome.Pixels.Retain, Release: microtome.Pixels.Release,
	})
}

// Close stops building pyramids and reading ahead, and drops the caches. No other call may be
// under way.
func (r *Reader) Close() error {
	if r.pyramid != nil {
		r.pyramid.close()
	}
	r.ahead.close()
	r.answers.Purge()
	r.regions.Purge()
	r.pixels.Purge()
	r.patches.Purge()
	for _, d := range r.devices {
		d.kept.Purge()
	}
	return nil
}

// Made says how an answer was made.
type Made uint8

// The ways an answer is made.
const (
	Stored   Made = iota // the stored tile's own stream
	Cropped              // the same, cut without decoding to what lies inside the slide
	Rendered             // decoded and encoded
	Empty                // nothing is stored there: background
)

// PixelOptions choose the plane and the encoding of pixels. The zero value is
// the first plane as JPEG.
type PixelOptions struct {
	C, Z, T int
	Format  microtome.Format
	// Quality of JPEG and WebP, 1 to 100; 0 means the Reader's own.
	Quality int
	// Background, when set, goes before the slide's and the Reader's.
	Background *microtome.RGB
	// ICC is "" or "embed": the slide's profile goes with the picture.
	ICC      string
	Priority microtome.Priority
}

// Answer is an encoded picture.
type Answer struct {
	// Body is shared with other askers: it must not be written to.
	Body   []byte
	Format microtome.Format
	Made   Made
	// Engine decoded it: "gpu" when a device did all of it, "cpu", or "none" when
	// nothing was decoded.
	Engine                  string
	CacheHit                bool
	Width, Height, Channels int
	// Level is the stored level that the pixels came from, Downsample the
	// answer's scale relative to level 0 and MPP its microns per pixel, nil
	// when unknown.
	Level      int
	Downsample float64
	MPP        *microtome.MPP
	// Preview says that better pixels will come once the slide's upper levels
	// are built. It must not be kept.
	Preview bool
}

// answerOverhead is about what an answer costs beside its body.
const answerOverhead = 400

func (a *Answer) bytes() int64 { return int64(cap(a.Body)) + answerOverhead }

// View is a rectangle of a virtual level: the slide at a downsample, Width x
// Height pixels in size. Rect lies inside it, in its own pixels.
type View struct {
	Downsample    float64
	Width, Height int64
	Rect          image.Rectangle
}

// ScaleKind is the unit of a Scale.
type ScaleKind uint8

// The units of a Scale.
const (
	ByLevel ScaleKind = iota
	ByMPP
	ByMagnification
	ByDownsample
)

// Scale is how large a region's pixels are. The zero value is level 0.
type Scale struct {
	Kind  ScaleKind
	Value float64
	// Tolerance is how far, relatively, a stored level's mpp may be from the
	// one asked for to be used as it is; 0 means 0.02, negative none.
	Tolerance float64
}

// Region is a rectangle of a slide: its corner in level-0 pixels, which may lie
// anywhere, and its size in the answer's pixels.
type Region struct {
	L0X, L0Y      int64
	Width, Height int
	Scale         Scale
}

// answered turns a question into the answer kept under k, or makes and keeps it,
// which takes about cost bytes meanwhile. Failures are not kept.
func (r *Reader) answered(ctx context.Context, s microtome.Slide, k answerKey, cost int64, make func(context.Context) (*Answer, error)) (Answer, error) {
	kept := r.answers
	if k.ask == askRegion {
		kept = r.regions
	}
	load := make
	if cost > smallCost {
		load = func(ctx context.Context) (*Answer, error) {
			if err := r.making.Take(ctx, cost); err != nil {
				return nil, err
			}
			defer r.making.Give(cost)
			return make(ctx)
		}
	}
	a, hit, err := begin(ctx, kept, k, s, load).Wait(ctx)
	if err != nil {
		return Answer{}, err
	}
	out := *a
	out.CacheHit = hit
	return out, nil
}

// smallCost is what may be made without waiting for memory: viewers' tiles.
const smallCost = 4 << 20

// pixelCost is about what pixels in the making take: themselves and their place
// in the encoded picture, in bytes.
func pixelCost(w, h int64) int64 { return 6 * w * h }

// fits says that a format can hold a picture of w x h pixels: JPEG's sizes have
// 16 bits (T.81 B.2.2), WebP's 14.
func fits(f microtome.Format, w, h int) error {
	limit := 0
	switch f {
	case microtome.FormatJPEG:
		limit = 1<<16 - 1
	case microtome.FormatWebP:
		limit = 1<<14 - 1
	}
	if limit > 0 && max(w, h) > limit {
		return fmt.Errorf("%dx%d pixels, at most %d a side in this format: %w", w, h, limit, microtome.ErrLimit)
	}
	return nil
}

// plane checks (c, z, t) and returns the plane's number.
func plane(info *microtome.Info, o *PixelOptions) (int, error) {
	p := info.Planes
	p.C, p.Z, p.T = max(p.C, 1), max(p.Z, 1), max(p.T, 1)
	if o.C < 0 || o.Z < 0 || o.T < 0 || o.C >= p.C || o.Z >= p.Z || o.T >= p.T {
		return 0, fmt.Errorf("plane c=%d z=%d t=%d: %w", o.C, o.Z, o.T, microtome.ErrNotFound)
	}
	return p.Index(o.C, o.Z, o.T), nil
}

// background is the colour of what is not stored.
func (r *Reader) background(info *microtome.Info, o *PixelOptions) microtome.RGB {
	switch {
	case o.Background != nil:
		return *o.Background
	case info.Background != nil:
		return *info.Background
	}
	return r.o.Background
}
