package tiff

import (
	"bytes"
	"context"
	"fmt"
	"math"
)

// Uint is the first value of an integer tag.
func (d *Dir) Uint(tag uint16) (uint64, bool, error) {
	e, ok := d.find(tag)
	if !ok {
		return 0, false, nil
	}
	if !e.typ.integer() {
		return 0, false, corrupt("tag %d: type %d is no integer", tag, e.typ)
	}
	p, err := d.head(e)
	if err != nil {
		return 0, false, fmt.Errorf("tag %d: %w", tag, err)
	}
	if d.negative(e.typ, p, 0) {
		return 0, false, corrupt("tag %d: negative", tag)
	}
	return d.uint(e.typ, p, 0), true, nil
}

// head reads the first value of an entry, inline or not.
func (d *Dir) head(e entry) ([]byte, error) {
	off, inline := d.place(e)
	if inline {
		return e.value, nil
	}
	p := make([]byte, e.typ.size())
	return p, d.file.readFull(context.Background(), p, int64(off))
}

// Uints is all values of an integer tag, nil when it is absent; more than most
// is ErrLimit.
func (d *Dir) Uints(tag uint16, most int) ([]uint64, error) {
	e, ok := d.find(tag)
	if !ok {
		return nil, nil
	}
	if !e.typ.integer() {
		return nil, corrupt("tag %d: type %d is no integer", tag, e.typ)
	}
	if e.count > int64(most) {
		return nil, overLimit("tag %d: %d values", tag, e.count)
	}
	p, err := d.raw(context.Background(), e)
	if err != nil {
		return nil, fmt.Errorf("tag %d: %w", tag, err)
	}
	v := make([]uint64, e.count)
	for i := range v {
		if d.negative(e.typ, p, i) {
			return nil, corrupt("tag %d: negative", tag)
		}
		v[i] = d.uint(e.typ, p, i)
	}
	return v, nil
}

// ASCII is a text up to its first NUL (a missing one is forgiven). BYTE and
// UNDEFINED pass for it.
func (d *Dir) ASCII(tag uint16) (string, bool, error) {
	e, ok := d.find(tag)
	if !ok {
		return "", false, nil
	}
	if e.typ.size() != 1 {
		return "", false, corrupt("tag %d: type %d is no text", tag, e.typ)
	}
	p, err := d.raw(context.Background(), e)
	if err != nil {
		return "", false, fmt.Errorf("tag %d: %w", tag, err)
	}
	if i := bytes.IndexByte(p, 0); i >= 0 {
		p = p[:i]
	}
	return string(p), true, nil
}

// Bytes is a tag's value as it lies in the file, nil when it is absent. The
// caller may keep and change it.
func (d *Dir) Bytes(tag uint16) ([]byte, error) { return d.BytesContext(context.Background(), tag) }

// BytesContext is Bytes for a caller that may leave.
func (d *Dir) BytesContext(ctx context.Context, tag uint16) ([]byte, error) {
	e, ok := d.find(tag)
	if !ok {
		return nil, nil
	}
	p, err := d.raw(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("tag %d: %w", tag, err)
	}
	if _, inline := d.place(e); inline {
		p = bytes.Clone(p)
	}
	return p, nil
}

// Rational is the first fraction of a RATIONAL tag as it stands: den may be 0.
// A negative SRATIONAL is ErrCorrupt.
func (d *Dir) Rational(tag uint16) (num, den uint64, ok bool, err error) {
	e, ok := d.find(tag)
	if !ok {
		return 0, 0, false, nil
	}
	if e.typ != Rational && e.typ != SRational {
		return 0, 0, false, corrupt("tag %d: type %d is no fraction", tag, e.typ)
	}
	p, err := d.head(e)
	if err != nil {
		return 0, 0, false, fmt.Errorf("tag %d: %w", tag, err)
	}
	n, m := d.file.Order.Uint32(p), d.file.Order.Uint32(p[4:])
	if e.typ == SRational && (int32(n) < 0 || int32(m) < 0) {
		return 0, 0, false, corrupt("tag %d: negative", tag)
	}
	return uint64(n), uint64(m), true, nil
}

// Float is the first value of a number tag of any type. A fraction over 0 is
// infinite or not a number, as IEEE 754 has it.
func (d *Dir) Float(tag uint16) (float64, bool, error) {
	e, ok := d.find(tag)
	if !ok {
		return 0, false, nil
	}
	p, err := d.head(e)
	if err != nil {
		return 0, false, fmt.Errorf("tag %d: %w", tag, err)
	}
	o := d.file.Order
	switch {
	case e.typ == Float:
		return float64(math.Float32frombits(o.Uint32(p))), true, nil
	case e.typ == Double:
		return math.Float64frombits(o.Uint64(p)), true, nil
	case e.typ == Rational:
		return float64(o.Uint32(p)) / float64(o.Uint32(p[4:])), true, nil
	case e.typ == SRational:
		return float64(int32(o.Uint32(p))) / float64(int32(o.Uint32(p[4:]))), true, nil
	case e.typ.signed():
		return float64(int64(d.uint(e.typ, p, 0))), true, nil
	case e.typ.integer():
		return float64(d.uint(e.typ, p, 0)), true, nil
	}
	return 0, false, corrupt("tag %d: type %d is no number", tag, e.typ)
}

func (t Type) signed() bool { return t == SByte || t == SShort || t == SLong || t == SLong8 }

func (t Type) integer() bool {
	switch t {
	case Byte, Short, Long, IFD, Long8, IFD8:
		return true
	}
	return t.signed()
}

func (d *Dir) negative(t Type, p []byte, i int) bool {
	return t.signed() && int64(d.uint(t, p, i)) < 0
}

// uint is the i-th integer of a value, signed ones extended to 64 bits.
func (d *Dir) uint(t Type, p []byte, i int) uint64 {
	o, size := d.file.Order, int(t.size())
	p = p[i*size : (i+1)*size]
	switch t {
	case SByte:
		return uint64(int64(int8(p[0])))
	case SShort:
		return uint64(int64(int16(o.Uint16(p))))
	case SLong:
		return uint64(int64(int32(o.Uint32(p))))
	}
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(o.Uint16(p))
	case 4:
		return uint64(o.Uint32(p))
	}
	return o.Uint64(p)
}
