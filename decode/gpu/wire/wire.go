// Package wire is the message that a lane of the GPU engine executes, as it lies
// in the memory that the server and the worker share. The C side's twin is
// native/message.h, which says what the fields mean; a test holds the two
// together.
package wire

import "unsafe"

// Version of the messages.
const Version = 1

// What became of a tile.
const (
	TileDone       = 0
	TileNotDecoded = 1
)

// What the components of a stream become.
const (
	ColorCopy   = 0 // as they are
	ColorYCC    = 1 // YCbCr to RGB
	ColorInvert = 2 // grey, white is 0
)

// Results of a message, and of the engine.
const (
	OK      = 0
	Missing = 1
	None    = 2
	Memory  = 3
	Refused = 4
	Lost    = 5
	Invalid = 6
	Pin     = 7
)

// NoSource is an Upload's Src that fills with Value instead.
const NoSource = ^uint64(0)

// NoLUT is an Out's LUT when samples are written as they are.
const NoLUT = ^uint32(0)

// Stages are what Message.Nanos counts.
const Stages = 6

// StageNames name them.
var StageNames = [Stages]string{"upload", "decode", "describe", "paint", "lay", "wait"}

// Message is the header; the arrays follow in the order of the counts, each at the
// next multiple of 16 bytes.
type Message struct {
	Version                                     uint32
	Tiles, Uploads, Outs, Pieces, Scales, Words uint32
	Flags                                       uint32
	CopySrc, CopyDst, CopyBytes                 uint64
	Status, VendorCode                          int32
	VendorCalls, _                              uint32
	Nanos                                       [Stages]uint64
	Error                                       [64]byte
}

// Tile asks for a decode.
type Tile struct {
	Src, Dst                uint64
	SrcLen                  uint32
	W, H                    uint16
	CSS, Color, Channels, _ uint8
	Status                  int32
}

// Upload asks for a copy into the arena, or a fill.
type Upload struct{ Src, Dst, Bytes, Value uint64 }

// Out is a picture being made.
type Out struct {
	Dst                           uint64
	W, H                          uint32
	Channels, Layout, Bytes, Fill uint8
	RGB                           [4]uint8
	LUT, _                        uint32
}

// Piece is a rectangle of a tile that goes onto an Out.
type Piece struct {
	Src                    uint64
	Pitch, Out             uint32
	Channels, W, H, SX, SY uint16
	_                      uint16
	DX, DY                 uint32
}

// Scale is an area filter from one Out to another.
type Scale struct {
	From, To, Across, Down uint32
	Line, _                uint64
}

// Batch is a message being put together.
type Batch struct {
	Tiles   []Tile
	Uploads []Upload
	Outs    []Out
	Pieces  []Piece
	Scales  []Scale
	Words   []uint32
	// CopySrc, CopyDst and CopyBytes are what goes back to the host.
	CopySrc, CopyDst, CopyBytes uint64
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	*b = Batch{Tiles: b.Tiles[:0], Uploads: b.Uploads[:0], Outs: b.Outs[:0], Pieces: b.Pieces[:0], Scales: b.Scales[:0], Words: b.Words[:0]}
}

// Size is how many bytes the message takes.
func (b *Batch) Size() int {
	n := up(int(unsafe.Sizeof(Message{})))
	n += up(len(b.Tiles) * int(unsafe.Sizeof(Tile{})))
	n += up(len(b.Uploads) * int(unsafe.Sizeof(Upload{})))
	n += up(len(b.Outs) * int(unsafe.Sizeof(Out{})))
	n += up(len(b.Pieces) * int(unsafe.Sizeof(Piece{})))
	n += up(len(b.Scales) * int(unsafe.Sizeof(Scale{})))
	return n + up(4*len(b.Words))
}

func up(n int) int { return (n + 15) &^ 15 }

// Write lays the message into memory of at least Size bytes that begins at a
// multiple of 16.
func (b *Batch) Write(mem []byte) *Message {
	m := (*Message)(unsafe.Pointer(unsafe.SliceData(mem)))
	*m = Message{
		Version: Version,
		Tiles:   uint32(len(b.Tiles)), Uploads: uint32(len(b.Uploads)), Outs: uint32(len(b.Outs)),
		Pieces: uint32(len(b.Pieces)), Scales: uint32(len(b.Scales)), Words: uint32(len(b.Words)),
		CopySrc: b.CopySrc, CopyDst: b.CopyDst, CopyBytes: b.CopyBytes,
	}
	mem = mem[up(int(unsafe.Sizeof(*m))):]
	mem = write(mem, b.Tiles)
	mem = write(mem, b.Uploads)
	mem = write(mem, b.Outs)
	mem = write(mem, b.Pieces)
	mem = write(mem, b.Scales)
	write(mem, b.Words)
	return m
}

func write[T any](mem []byte, from []T) []byte {
	if len(from) == 0 {
		return mem
	}
	n := len(from) * int(unsafe.Sizeof(from[0]))
	copy(mem, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(from))), n))
	return mem[up(n):]
}

// TilesOf are the tiles of a message that lies at the beginning of mem, with
// their answers.
func TilesOf(mem []byte, n int) []Tile {
	if n == 0 {
		return nil
	}
	at := up(int(unsafe.Sizeof(Message{})))
	return unsafe.Slice((*Tile)(unsafe.Pointer(&mem[at])), n)
}
