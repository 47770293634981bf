// Package tiff walks TIFF and BigTIFF directories lazily and within bounds, and
// reads their tiles and strips; it knows no slides.
package tiff

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/microtome/microtome"
)

// Limits bounds what an untrusted file can make us read and hold. Zero means
// the default.
type Limits struct {
	Dirs       int   // directories, SubIFDs counted: 1,000
	Entries    int   // of one directory: 4,096
	Depth      int   // of SubIFDs: 4
	ValueBytes int64 // of one value that is read whole: 16 MB
	OpenBytes  int64 // read by Parse in all: 16 MB
	CellBytes  int64 // stored bytes of one tile or strip: 256 MB
}

func (l Limits) withDefaults() Limits {
	defaultTo(&l.Dirs, 1000)
	defaultTo(&l.Entries, 4096)
	defaultTo(&l.Depth, 4)
	defaultTo(&l.ValueBytes, 16<<20)
	defaultTo(&l.OpenBytes, 16<<20)
	defaultTo(&l.CellBytes, 256<<20)
	return l
}

func defaultTo[T int | int64](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// File is an opened TIFF. It holds the entries of its directories as they lie
// in the file, and looks values up as they are asked for. All methods of it and
// its directories may be called at once.
type File struct {
	Big      bool
	Order    binary.ByteOrder
	Dirs     []*Dir   // the chain, in order
	Warnings []string // oddities that did not stop Parse

	src    microtome.Source
	limits Limits
	chunks chunkCache
	runs   sync.Pool // of *[]byte, what was read of several cells at once
}

// Parse reads the directories of src: one read each, no value but SubIFDs.
//
// A broken first directory is ErrCorrupt; what is broken behind it ends the
// chain with a warning. A chain that loops ends where it would repeat. More
// directories than the limit is ErrLimit.
func Parse(ctx context.Context, src microtome.Source, lim Limits) (*File, error) {
	f := &File{src: src, limits: lim.withDefaults()}
	first, err := f.readHeader(ctx)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	w := &walker{f: f, seen: make(map[int64]bool)}
	if err := w.chain(ctx, first); err != nil {
		return nil, err
	}
	for _, d := range f.Dirs {
		if err := w.subDirs(ctx, d, 1); err != nil {
			return nil, err
		}
	}
	f.Warnings = w.told()
	return f, nil
}

// readHeader reads byte order and version (TIFF 6.0 §2) and returns where the
// first directory lies.
func (f *File) readHeader(ctx context.Context) (first uint64, err error) {
	var h [16]byte
	n, err := f.src.ReadAt(ctx, h[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if n < 8 {
		return 0, corrupt("%d bytes are no TIFF", n)
	}
	switch string(h[:2]) {
	case "II":
		f.Order = binary.LittleEndian
	case "MM":
		f.Order = binary.BigEndian
	default:
		return 0, corrupt("byte order %q", h[:2])
	}
	switch version := f.Order.Uint16(h[2:]); {
	case version == 42:
		return uint64(f.Order.Uint32(h[4:])), nil
	case version != 43:
		return 0, &microtome.Unsupported{Tag: "TIFF version", Value: fmt.Sprint(version)}
	case n < 16 || f.Order.Uint16(h[4:]) != 8 || f.Order.Uint16(h[6:]) != 0:
		return 0, corrupt("BigTIFF offset size %d", f.Order.Uint16(h[4:]))
	}
	f.Big = true
	return f.Order.Uint64(h[8:]), nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, microtome.ErrCorrupt)...)
}

func overLimit(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, microtome.ErrLimit)...)
}

func unsupported(tag string, value any) error {
	return &microtome.Unsupported{Tag: tag, Value: fmt.Sprint(value)}
}

// readFull reads exactly len(p) bytes that Size says are there.
func (f *File) readFull(ctx context.Context, p []byte, off int64) error {
	if off < 0 || off > f.src.Size()-int64(len(p)) {
		return corrupt("%d bytes at %d reach beyond the file", len(p), off)
	}
	n, err := f.src.ReadAt(ctx, p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%d of %d bytes at %d: %w", n, len(p), off, microtome.ErrSource)
	}
	return err
}
