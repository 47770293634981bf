package tiff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/microtome/microtome"
)

// maxWarnings bounds what a hostile file can make us say.
const maxWarnings = 32

// firstRead is enough for most directories: 84 entries, in BigTIFF 50.
const firstRead = 1 << 10

// walker reads directories. seen holds each one's offset, so that none is read
// twice: neither chain nor SubIFDs can loop.
type walker struct {
	f        *File
	seen     map[int64]bool
	bytes    int64
	buf      []byte
	warnings []string
	more     int
}

func (w *walker) warn(format string, args ...any) {
	if len(w.warnings) >= maxWarnings {
		w.more++
		return
	}
	w.warnings = append(w.warnings, fmt.Sprintf(format, args...))
}

func (w *walker) told() []string {
	if w.more > 0 {
		w.warnings = append(w.warnings, fmt.Sprintf("and %d more", w.more))
	}
	return w.warnings
}

// chain follows the main directories from the first.
func (w *walker) chain(ctx context.Context, next uint64) error {
	for i := 0; next != 0; i++ {
		name := fmt.Sprintf("ifd %d", i)
		if w.isSeen(next) {
			w.warn("%s: the chain loops back to %d", name, next)
			break
		}
		d := &Dir{Index: i, file: w.f}
		after, err := w.read(ctx, d, next)
		if err != nil && i > 0 && errors.Is(err, microtome.ErrCorrupt) {
			w.warn("%s ends the chain: %v", name, err)
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		w.f.Dirs = append(w.f.Dirs, d)
		next = after
	}
	if len(w.f.Dirs) == 0 {
		return corrupt("no directories")
	}
	return nil
}

func (w *walker) isSeen(off uint64) bool { return off <= 1<<63-1 && w.seen[int64(off)] }

// subDirs reads the directories that d's tag 330 names, and theirs.
func (w *walker) subDirs(ctx context.Context, d *Dir, depth int) error {
	e, ok := d.find(SubIFDs)
	if !ok {
		return nil
	}
	if depth > w.f.limits.Depth {
		w.warn("%s: SubIFDs more than %d deep are ignored", d.Name(), w.f.limits.Depth)
		return nil
	}
	if e.typ != Long && e.typ != IFD && e.typ != Long8 && e.typ != IFD8 {
		w.warn("%s: SubIFDs of type %d are ignored", d.Name(), e.typ)
		return nil
	}
	if e.count > int64(w.f.limits.Dirs) {
		return overLimit("%s: %d SubIFDs", d.Name(), e.count)
	}
	if err := w.spend(e.count * e.typ.size()); err != nil {
		return err
	}
	raw, err := d.raw(ctx, e)
	if err != nil {
		return fmt.Errorf("%s: tag 330: %w", d.Name(), err)
	}
	for i := range int(e.count) {
		off := d.uint(e.typ, raw, i)
		sub := &Dir{Index: i, Parent: d, file: w.f}
		if off == 0 || w.isSeen(off) {
			w.warn("%s: offset %d is ignored", sub.Name(), off)
			continue
		}
		_, err := w.read(ctx, sub, off)
		if errors.Is(err, microtome.ErrCorrupt) {
			w.warn("%s is ignored: %v", sub.Name(), err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", sub.Name(), err)
		}
		d.SubDirs = append(d.SubDirs, sub)
		if err := w.subDirs(ctx, sub, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) spend(n int64) error {
	if w.bytes += n; w.bytes > w.f.limits.OpenBytes {
		return overLimit("directories of more than %d bytes", w.f.limits.OpenBytes)
	}
	return nil
}

// read reads one directory (TIFF 6.0 §2) and returns the offset of the next.
func (w *walker) read(ctx context.Context, d *Dir, off uint64) (next uint64, err error) {
	size := w.f.src.Size()
	countSize, entrySize, nextSize := int64(2), int64(12), int64(4)
	if w.f.Big {
		countSize, entrySize, nextSize = 8, 20, 8
	}
	if off > uint64(size) || int64(off) > size-countSize {
		return 0, corrupt("offset %d is beyond the file", off)
	}
	if len(w.seen) >= w.f.limits.Dirs {
		return 0, overLimit("more than %d directories", w.f.limits.Dirs)
	}
	d.Offset = int64(off)
	w.seen[d.Offset] = true
	head, err := w.fill(ctx, d.Offset, min(firstRead, size-d.Offset))
	if err != nil {
		return 0, err
	}
	n := uint64(w.f.Order.Uint16(head))
	if w.f.Big {
		n = w.f.Order.Uint64(head)
	}
	if n == 0 || n > uint64(w.f.limits.Entries) {
		return 0, corrupt("%d entries", n)
	}
	need := countSize + int64(n)*entrySize
	if need > size-d.Offset {
		return 0, corrupt("%d entries reach beyond the file", n)
	}
	whole := min(need+nextSize, size-d.Offset)
	if whole > int64(len(head)) {
		if head, err = w.fill(ctx, d.Offset, whole); err != nil {
			return 0, err
		}
	}
	w.keep(d, head[countSize:need], int(entrySize))
	switch {
	case whole < need+nextSize:
		w.warn("%s: the file ends before the offset of the next directory", d.Name())
		return 0, nil
	case w.f.Big:
		return w.f.Order.Uint64(head[need:]), nil
	}
	return uint64(w.f.Order.Uint32(head[need:])), nil
}

// fill reads n bytes into the walker's buffer.
func (w *walker) fill(ctx context.Context, off, n int64) ([]byte, error) {
	if err := w.spend(n); err != nil {
		return nil, err
	}
	w.buf = slices.Grow(w.buf[:0], int(n))[:n]
	return w.buf, w.f.readFull(ctx, w.buf, off)
}

// keep copies the entries of raw whose values can be had, ascending by tag. Of
// equal tags the first counts.
func (w *walker) keep(d *Dir, raw []byte, size int) {
	d.entries = make([]byte, 0, len(raw))
	last, sorted := -1, true
	for i := 0; i < len(raw); i += size {
		field := raw[i : i+size]
		e := d.decode(field)
		if why := d.dangling(e); why != "" {
			w.warn("%s: tag %d is ignored: %s", d.Name(), e.tag, why)
			continue
		}
		if int(e.tag) <= last {
			sorted = false
		}
		last = int(e.tag)
		d.entries = append(d.entries, field...)
	}
	if sorted {
		return
	}
	w.warn("%s: entries are out of order", d.Name())
	fields := slices.Collect(slices.Chunk(d.entries, size))
	tag := func(p []byte) int { return int(w.f.Order.Uint16(p)) }
	slices.SortStableFunc(fields, func(a, b []byte) int { return tag(a) - tag(b) })
	fields = slices.CompactFunc(fields, func(a, b []byte) bool { return tag(a) == tag(b) })
	d.entries = bytes.Join(fields, nil)
}
