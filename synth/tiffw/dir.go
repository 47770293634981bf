package tiffw

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// Type is a TIFF field type (TIFF 6.0 §2, BigTIFF for 16 to 18). Any value may
// be written, known or not.
type Type uint16

// The field types.
const (
	Byte      Type = 1
	ASCII     Type = 2
	Short     Type = 3
	Long      Type = 4
	Rational  Type = 5
	SByte     Type = 6
	Undefined Type = 7
	SShort    Type = 8
	SLong     Type = 9
	SRational Type = 10
	Float     Type = 11
	Double    Type = 12
	IFD       Type = 13
	Long8     Type = 16
	SLong8    Type = 17
	IFD8      Type = 18
)

// Entry is one field of a directory. The count that is written is Count as it
// stands, so it may disagree with the value.
type Entry struct {
	Tag   uint16
	Type  Type
	Count uint64
	// Value is a []byte, string or slice of fixed-size numbers, written in the
	// file's byte order: in the entry when it fits there, else out of line.
	Value any
	// Offset, when set, is written in place of the value: nothing is stored out
	// of line. This is how an entry points past the end, at itself or into
	// another's data.
	Offset *uint64
	// OutOfLine stores the value elsewhere even when it would fit the entry.
	OutOfLine bool
}

// Dir is an image file directory under construction. The zero value is empty
// and ready; its methods add entries and return the Dir, so calls chain. Entries
// are sorted by tag when written, unless Unsorted.
type Dir struct {
	Entries  []Entry
	Unsorted bool
	// Next overrides the offset of the next directory (a loop, say).
	Next *uint64
	// EntryCount overrides the number of entries that the directory claims.
	EntryCount *uint64
}

// U is a pointer to v, for the overrides.
func U(v uint64) *uint64 { return &v }

// Add appends an entry as it is.
func (d *Dir) Add(e Entry) *Dir {
	d.Entries = append(d.Entries, e)
	return d
}

// Bytes adds BYTE values.
func (d *Dir) Bytes(tag uint16, v ...byte) *Dir { return d.Raw(tag, Byte, uint64(len(v)), v) }

// Short adds SHORT values.
func (d *Dir) Short(tag uint16, v ...uint16) *Dir {
	return d.Add(Entry{Tag: tag, Type: Short, Count: uint64(len(v)), Value: v})
}

// Long adds LONG values.
func (d *Dir) Long(tag uint16, v ...uint32) *Dir {
	return d.Add(Entry{Tag: tag, Type: Long, Count: uint64(len(v)), Value: v})
}

// Long8 adds LONG8 values, which only BigTIFF readers know.
func (d *Dir) Long8(tag uint16, v ...uint64) *Dir {
	return d.Add(Entry{Tag: tag, Type: Long8, Count: uint64(len(v)), Value: v})
}

// ASCII adds a text and its closing NUL.
func (d *Dir) ASCII(tag uint16, s string) *Dir {
	return d.Raw(tag, ASCII, uint64(len(s)+1), append([]byte(s), 0))
}

// Undefined adds opaque bytes (JPEGTables, an ICC profile).
func (d *Dir) Undefined(tag uint16, p []byte) *Dir { return d.Raw(tag, Undefined, uint64(len(p)), p) }

// Rational adds fractions; v holds numerator and denominator in turn.
func (d *Dir) Rational(tag uint16, v ...uint32) *Dir {
	return d.Add(Entry{Tag: tag, Type: Rational, Count: uint64(len(v) / 2), Value: v})
}

// Float adds FLOAT values.
func (d *Dir) Float(tag uint16, v ...float32) *Dir {
	return d.Add(Entry{Tag: tag, Type: Float, Count: uint64(len(v)), Value: v})
}

// Double adds DOUBLE values.
func (d *Dir) Double(tag uint16, v ...float64) *Dir {
	return d.Add(Entry{Tag: tag, Type: Double, Count: uint64(len(v)), Value: v})
}

// Raw adds an entry of any type and count whose value is these bytes as they
// are; p is not swapped.
func (d *Dir) Raw(tag uint16, t Type, count uint64, p []byte) *Dir {
	return d.Add(Entry{Tag: tag, Type: t, Count: count, Value: p})
}

// At adds an entry whose value field is the offset itself, stored or not.
func (d *Dir) At(tag uint16, t Type, count, offset uint64) *Dir {
	return d.Add(Entry{Tag: tag, Type: t, Count: count, Offset: &offset})
}

// Set replaces the first entry of e's tag, or adds it.
func (d *Dir) Set(e Entry) *Dir {
	for i := range d.Entries {
		if d.Entries[i].Tag == e.Tag {
			d.Entries[i] = e
			return d
		}
	}
	return d.Add(e)
}

// Delete removes every entry of the tag.
func (d *Dir) Delete(tag uint16) *Dir {
	kept := d.Entries[:0]
	for _, e := range d.Entries {
		if e.Tag != tag {
			kept = append(kept, e)
		}
	}
	d.Entries = kept
	return d
}

// sorted is the entries in the order in which they are written.
func (d *Dir) sorted() []Entry {
	es := append([]Entry(nil), d.Entries...)
	if !d.Unsorted {
		sort.SliceStable(es, func(i, j int) bool { return es[i].Tag < es[j].Tag })
	}
	return es
}

// encode is the entry's value as bytes in the file's order.
func (e Entry) encode(order binary.ByteOrder) ([]byte, error) {
	switch v := e.Value.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	p, err := binary.Append(nil, order, e.Value)
	if err != nil {
		return nil, fmt.Errorf("tag %d: value %T: %w", e.Tag, e.Value, err)
	}
	return p, nil
}
