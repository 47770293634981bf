package microtome

import (
	"context"
	"errors"
	"image"
)

// ErrDeviceLost: the device's memory is gone, with all pixels in it. What was
// asked for is made on the CPU instead; the device may come back.
var ErrDeviceLost = errors.New("device lost")

// Device decodes tiles into memory of its own and makes patches of them there.
//
// All methods may be called at once. Pixels of a device have no Host rows; they
// stay valid until their last Release or until the device is lost, which every
// later use says. Close is called once, after the last Release.
type Device interface {
	// Name is "nvidia:0".
	Name() string
	// Ready says that the device works: it does not while it is being started
	// again, nor after it was turned off.
	Ready() bool
	// Load decodes whole tiles, as Decoder does, into device memory. then gets
	// each result once, on any goroutine, before or after Load returns; the pixels
	// are its own. Load does the work of the CPU on the caller's goroutine and
	// waits where the device has too much to do. It fails with ErrBusy when no
	// memory becomes free, and with ErrDeviceLost.
	Load(ctx context.Context, jobs []Job, then func(i int, r Result))
	// Make lays loaded pixels together. It returns when they lie in the answer.
	Make(ctx context.Context, b *DeviceBatch) (DeviceArray, error)
	// Memory is how many bytes the device has for pixels, Evict whom to ask for
	// some when they are used up: it gives some pixels up, or says that it has
	// none. Lost is called when all pixels are gone, before there can be new ones.
	Memory() int64
	Watch(evict func() bool, lost func())
	Stats() DeviceStats
	// Reset asks a device on again that is off because its worker died too often. It
	// is an error when it stays off.
	Reset() error
	Close() error
}

// DevicePixels are pixels in a device's memory.
type DevicePixels interface {
	Pixels
	// ByCPU says that the CPU decoded them, and that they were copied.
	ByCPU() bool
}

// Layout is the order of an array's axes.
type Layout uint8

// The layouts of batches: patches, then rows, columns and samples, or planes.
const (
	NHWC Layout = iota
	NCHW
)

// DeviceBatch says what a device is to make: patches of one size, one after the
// other.
type DeviceBatch struct {
	Width, Height, Channels int // Channels is 1 or 3
	Layout                  Layout
	Type                    DataType
	// LUT turns a sample of channel c into the bits of one of Type, see NewLUT; nil
	// for Uint8 as it is.
	LUT     *LUT
	Patches []DevicePatch
	// Host asks for the array in host memory.
	Host bool
}

// DevicePatch is what one patch is made of.
type DevicePatch struct {
	// Fill is the colour of what no piece covers. Covered says that the pieces
	// leave nothing.
	Fill    RGB
	Covered bool
	Pieces  []DevicePiece
	// Filter, when not nil, says that the pieces cover a source of that size, from
	// which the patch is filtered.
	Filter *DeviceFilter
}

// DevicePiece lays the part From of loaded pixels at (X, Y).
type DevicePiece struct {
	Pixels Pixels
	From   image.Rectangle
	X, Y   int
}

// DeviceFilter is an area filter: a tap for each column and row of the patch.
type DeviceFilter struct {
	Width, Height, Channels int // of the source
	Across, Down            []Tap
}

// Tap is the weights of one pixel along one axis: source pixels First, First+1, …
// They sum to 2^14; a pixel without weights is background.
type Tap struct {
	First   int
	Weights []uint32
}

// DeviceArray is a batch that was made. Release gives its memory back.
type DeviceArray interface {
	// Host is the array in host memory when DeviceBatch.Host was set, else nil.
	Host() []byte
	Bytes() int64
	Release()
}

// DeviceStats are what a device counted since it was opened, and what it holds.
type DeviceStats struct {
	Name, Decoder string
	State         string // "ready", "starting", "off"
	Why           string // when it is off
	// Decoded counts tiles by who decoded them: the device, or the CPU beside it
	// (because the device had much to do) or in its place (by reason).
	Decoded, Beside int64
	Ineligible      map[string]int64
	Corrupt         int64 // of what the CPU was given: broken
	Batches         int64 // decoder calls
	Made            int64 // patches
	Checked         int64 // tiles that were decoded again on the CPU and compared
	Strikes, Starts int64 // deaths of the worker, and how often it was started
	// ArenaBytes is the device's memory for pixels, UsedBytes what is taken of it,
	// work in flight included; Slots are pieces of it.
	ArenaBytes, UsedBytes, Slots int64
	Waiting                      int // tiles that wait for the decoder
	// Nanos is where the time of the worker's messages went, by stage.
	Nanos map[string]int64
}
