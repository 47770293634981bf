// Package microtome holds the nouns and contracts that every other package of
// the server speaks: bytes (Source), slides, levels, tiles, pixels, and the
// seams where a format or a decoder plugs in. It imports the standard library
// only and does no work of its own.
//
// Coordinates carry their plane in their name: l0x, l0y are level-0 pixels,
// lx, ly a level's own pixels, zx, zy Deep Zoom pixels, col and row tiles of a
// level's stored grid.
package microtome

import (
	"context"
	"image"
	"time"
)

// Source is the bytes of one slide file.
//
// All methods may be called at once from many goroutines. ReadAt follows
// io.ReaderAt: it returns a non-nil error when fewer than len(p) bytes were
// read (io.EOF at the end), and ErrSource wrapped when the bytes could not be
// had. The opener closes it; reads after Close fail with ErrSource.
type Source interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	// Size is the length in bytes when the source was opened.
	Size() int64
	// Generation names this state of the bytes (size, mtime, inode; or an
	// object's ETag). Two different contents never share one.
	Generation() Generation
	Close() error
}

// Generation identifies one state of a slide's file. It keys every cache, so
// that a replaced file is never served stale.
type Generation struct {
	ID      string // short, URL-safe
	Size    int64
	ModTime time.Time
}

// Slide is one opened whole-slide image.
//
// All methods may be called at once. A tile that cannot be read is an error of
// that tile alone: ErrCorrupt, ErrUnsupported, ErrLimit or ErrSource wrapped
// with the place; the same slide keeps answering. Close is called once, by the
// opener, after the last other call has returned.
type Slide interface {
	// Info describes the slide. It is complete when the slide is opened and
	// never changes: the caller must not modify it.
	Info() *Info
	// ReadTile returns the stored tile at (col, row) of a level's grid, as one
	// self-contained stream (JPEG tables spliced in). It returns ErrEmptyTile
	// for a sparse tile (offset or byte count 0) and ErrNotFound outside the
	// grid. The answer's Data belongs to the caller.
	ReadTile(ctx context.Context, level, plane, col, row int) (Tile, error)
	// ReadAssociated does the same for the grid of an associated image.
	ReadAssociated(ctx context.Context, name string, col, row int) (Tile, error)
	// Properties returns what OpenSlide would report, under its keys, the
	// quickhash included. It may read the file (once; then remembered).
	Properties(ctx context.Context) (map[string]string, error)
	// ContentID names the content wherever the file lies: OpenSlide's
	// quickhash-1 where it has one, else a hash of directories and tiles.
	// It may read the file (once; then remembered).
	ContentID(ctx context.Context) (string, error)
	// ICCProfile returns the embedded profile, nil when there is none. name is
	// "" for the slide itself, else an associated image.
	ICCProfile(ctx context.Context, name string) ([]byte, error)
	Close() error
}

// Holder is a slide that others may close meanwhile. Work that may outlive the
// use for which its caller was given the slide holds it.
type Holder interface {
	Slide
	// Hold keeps the slide open until release is called, once. The caller must
	// be using the slide.
	Hold() (release func())
}

// BatchReader is a slide that reads several tiles with fewer reads than tiles.
type BatchReader interface {
	Slide
	// ReadTiles answers refs, as ReadTile would, in the first len(refs)
	// elements of out. Tiles whose bytes lie near each other are read together:
	// never more bytes than the tiles' own and a tenth.
	ReadTiles(ctx context.Context, refs []TileRef, out []TileResult) ReadCount
}

// TileRef names a stored tile.
type TileRef struct{ Level, Plane, Col, Row int }

// TileResult answers one TileRef: Err is nil or what ReadTile fails with.
type TileResult struct {
	Tile Tile
	Err  error
}

// ReadCount says how tiles were read: how many, in how many reads, their own
// bytes and those read. Tables of offsets are not in it.
type ReadCount struct{ Tiles, Reads, TileBytes, ReadBytes int64 }

// Add adds another count to n.
func (n *ReadCount) Add(m ReadCount) {
	n.Tiles, n.Reads = n.Tiles+m.Tiles, n.Reads+m.Reads
	n.TileBytes, n.ReadBytes = n.TileBytes+m.TileBytes, n.ReadBytes+m.ReadBytes
}

// ReadOne counts a tile that was read by itself.
func ReadOne(t Tile) ReadCount {
	size := int64(len(t.Data))
	return ReadCount{Tiles: 1, Reads: 1, TileBytes: size, ReadBytes: size}
}

// Info describes an opened slide.
type Info struct {
	Format     string // "aperio", "ome-tiff" or "generic-tiff"
	Generation Generation
	Levels     []Level      // level 0 first, never empty
	Associated []Associated // label, macro, thumbnail, in file order
	Planes     Planes
	// MPP is nil when unknown; never zero, never infinite.
	MPP *MPP
	// ObjectivePower is nil when unknown.
	ObjectivePower *float64
	// Background is the colour of missing tiles; nil: the server's choice.
	Background *RGB
	// InheritEmpty says that an empty tile of level k is painted from level
	// k-1 (Aperio); otherwise it is background.
	InheritEmpty bool
	// Bounds is the box of level-0 pixels that hold tissue, nil when unknown.
	Bounds *image.Rectangle
	// ICCBytes is the size of the embedded profile, 0 when there is none.
	ICCBytes int64
	// Warnings are oddities that did not stop the slide from opening.
	Warnings []string
}

// Level is one resolution of a slide, with its stored grid. Strips are tiles
// of full width.
type Level struct {
	Grid
	// Downsample is relative to level 0, as OpenSlide computes it: the mean of
	// the two axes' ratios.
	Downsample float64
}

// Grid is an image as it is stored: its size and its cells, all of one size.
// The last column and row may reach beyond the image; that padding is never
// visible.
type Grid struct {
	Width, Height         int64
	TileWidth, TileHeight int
	Cols, Rows            int
	Codec                 Codec
	Color                 Color
	Samples, Bits         int
}

// TileRect is the part of the image that cell (col, row) shows, cropped at the
// right and bottom edge, in the image's own pixels.
func (g Grid) TileRect(col, row int) image.Rectangle {
	x, y := col*g.TileWidth, row*g.TileHeight
	r := image.Rect(x, y, x+g.TileWidth, y+g.TileHeight)
	return r.Intersect(image.Rect(0, 0, int(g.Width), int(g.Height)))
}

// Associated is a small image beside the slide: label, macro or thumbnail.
type Associated struct {
	Name string
	Grid
	ICCBytes int64
}

// Planes counts the planes of a multichannel slide; an RGB slide has one of
// each. A plane's index is (t*Z + z)*C + c.
type Planes struct {
	C, Z, T  int
	Channels []Channel // len C, or nil
}

// Index is the plane number that Slide.ReadTile takes.
func (p Planes) Index(c, z, t int) int { return (t*p.Z+z)*p.C + c }

// Channel is one channel of a multichannel slide.
type Channel struct {
	Name  string
	Color *RGB
}

// MPP is microns per pixel at level 0.
type MPP struct{ X, Y float64 }

// RGB is a colour, 8 bits a channel.
type RGB struct{ R, G, B uint8 }

// Codec is how a tile's bytes are compressed.
type Codec uint8

// The codecs that can be decoded.
const (
	CodecNone Codec = iota
	CodecJPEG
	CodecJPEG2000
	CodecDeflate
	CodecLZW
	CodecPackBits
	CodecZstd
)

// Color is what a tile's samples mean. TIFF's Photometric decides, over a
// stream's own markers.
type Color uint8

// The colour models of stored tiles.
const (
	ColorGray      Color = iota
	ColorGrayWhite       // WhiteIsZero: 0 is white
	ColorRGB
	ColorYCbCr
	ColorPalette
)

// Tile is one encoded cell, playable by itself.
type Tile struct {
	Data  []byte
	Codec Codec
	// Color is the meaning of the samples inside Data.
	Color Color
	// Width and Height are the stored cell's size, padding included.
	Width, Height int
	// Visible is the size that lies inside the image: at most Width x Height.
	VisibleWidth, VisibleHeight int
	// FirstRow is where the cell begins inside Data: strips too large to be
	// decoded whole are cut into bands. 0 for tiles.
	FirstRow int
	// StreamHeight is how many rows Data holds, Height for tiles.
	StreamHeight  int
	Samples, Bits int
	Predictor     int       // TIFF 6.0 §14: 1 none, 2 horizontal
	FillOrder     int       // TIFF 6.0 §8: 2 when bits are reversed, else 1
	Palette       *[256]RGB // ColorPalette only
}
