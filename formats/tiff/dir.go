package tiff

import (
	"context"
	"fmt"
	"sort"
	"sync/atomic"
)

// Dir is one image file directory. Entries whose value lies beyond the file or
// whose type is unknown are as if absent.
//
// The look-ups read the file as they need to; they fail with ErrCorrupt,
// ErrLimit or ErrSource and name the tag. A tag that is absent is no error.
type Dir struct {
	Offset  int64  // in the file
	Index   int    // in the chain, or in its parent's SubIFDs
	Parent  *Dir   // nil for the chain
	SubDirs []*Dir // tag 330

	file    *File
	entries []byte // ascending by tag, as they lie in the file
	known   atomic.Pointer[Geometry]
	cells   atomic.Pointer[cells]
}

// RawEntry is an entry as it stands in the file.
type RawEntry struct {
	Tag   uint16
	Type  Type
	Count int64
}

// Name says which directory this is, for errors: "ifd 3" or "ifd 0 sub 2".
func (d *Dir) Name() string {
	if d.Parent != nil {
		return fmt.Sprintf("%s sub %d", d.Parent.Name(), d.Index)
	}
	return fmt.Sprintf("ifd %d", d.Index)
}

// Has says whether the directory has a tag.
func (d *Dir) Has(tag uint16) bool {
	_, ok := d.find(tag)
	return ok
}

// Count is how many values a tag has, 0 when it is absent.
func (d *Dir) Count(tag uint16) int64 {
	e, _ := d.find(tag)
	return e.count
}

// RawEntry describes a tag's entry; ok is false when it is absent.
func (d *Dir) RawEntry(tag uint16) (r RawEntry, ok bool) {
	e, ok := d.find(tag)
	return RawEntry{Tag: e.tag, Type: e.typ, Count: e.count}, ok
}

// entry is a decoded directory entry. count and size are within the file.
type entry struct {
	tag   uint16
	typ   Type
	count int64
	value []byte // the value field: 4 bytes, in BigTIFF 8
	huge  bool   // the count is more than any file holds
}

func (d *Dir) entrySize() int {
	if d.file.Big {
		return 20
	}
	return 12
}

func (d *Dir) decode(p []byte) entry {
	o := d.file.Order
	e := entry{tag: o.Uint16(p), typ: Type(o.Uint16(p[2:]))}
	n := uint64(o.Uint32(p[4:]))
	e.value = p[8:]
	if d.file.Big {
		n, e.value = o.Uint64(p[4:]), p[12:]
	}
	e.count, e.huge = int64(n), n > 1<<62
	return e
}

// dangling says why an entry is useless, "" when it is good. Counts are
// compared by division: a product could overflow.
func (d *Dir) dangling(e entry) string {
	size := e.typ.size()
	if size == 0 {
		return fmt.Sprintf("unknown type %d", e.typ)
	}
	if e.huge || e.count > d.file.src.Size()/size {
		return "more values than the file has bytes"
	}
	if e.count == 0 {
		return "no value"
	}
	if off, inline := d.place(e); !inline && off > uint64(d.file.src.Size()-e.count*size) {
		return fmt.Sprintf("value at %d is beyond the file", off)
	}
	return ""
}

// place is where an entry's value lies when it does not fit into the entry.
func (d *Dir) place(e entry) (off uint64, inline bool) {
	if e.count*e.typ.size() <= int64(len(e.value)) {
		return 0, true
	}
	if d.file.Big {
		return d.file.Order.Uint64(e.value), false
	}
	return uint64(d.file.Order.Uint32(e.value)), false
}

func (d *Dir) find(tag uint16) (entry, bool) {
	size := d.entrySize()
	n := len(d.entries) / size
	i := sort.Search(n, func(i int) bool { return d.file.Order.Uint16(d.entries[i*size:]) >= tag })
	if i == n || d.file.Order.Uint16(d.entries[i*size:]) != tag {
		return entry{}, false
	}
	return d.decode(d.entries[i*size : (i+1)*size]), true
}

// raw reads an entry's whole value, in the file's byte order. Inline values are
// not copied: callers do not write.
func (d *Dir) raw(ctx context.Context, e entry) ([]byte, error) {
	n := e.count * e.typ.size()
	off, inline := d.place(e)
	if inline {
		return e.value[:n], nil
	}
	if n > d.file.limits.ValueBytes {
		return nil, overLimit("%d bytes", n)
	}
	p := make([]byte, n)
	return p, d.file.readFull(ctx, p, int64(off))
}
