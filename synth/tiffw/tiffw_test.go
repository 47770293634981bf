package tiffw

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// TestLayouts checks the file of each form byte by byte where it matters: the
// header, the link to the first directory, an inline and an outer value.
func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      Options
		header []byte
	}{
		{"classic little", Options{}, []byte("II\x2a\x00")},
		{"classic big-endian", Options{Order: binary.BigEndian}, []byte("MM\x00\x2a")},
		{"BigTIFF little", Options{Big: true}, []byte("II\x2b\x00\x08\x00\x00\x00")},
		{"BigTIFF big-endian", Options{Big: true, Order: binary.BigEndian}, []byte("MM\x00\x2b\x00\x08\x00\x00")},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewBuffer()
			w := New(b, c.o)
			w.Block([]byte("odd"))
			p := w.Dir(new(Dir).ASCII(270, "out of line text").Short(256, 0x1234))
			second := w.Dir(new(Dir).Long(257, 7))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got, order := b.Bytes(), w.Order()
			if !bytes.HasPrefix(got, c.header) {
				t.Fatalf("header % x", got[:8])
			}
			word := func(at int64) uint64 {
				if c.o.Big {
					return order.Uint64(got[at:])
				}
				return uint64(order.Uint32(got[at:]))
			}
			if word(int64(len(c.header))) != uint64(p.Offset) || word(p.Next) != uint64(second.Offset) || word(second.Next) != 0 {
				t.Error("the chain is not linked")
			}
			if order.Uint16(got[p.Values[256]:]) != 0x1234 {
				t.Error("inline value")
			}
			if at := p.Values[270]; string(got[at:at+16]) != "out of line text" || got[at+16] != 0 {
				t.Error("outer value")
			}
			if p.Fields[256] >= p.Fields[270] {
				t.Error("entries are not sorted")
			}
		})
	}
}

// TestHostile checks that what contradicts itself is written as told.
func TestHostile(t *testing.T) {
	b := NewBuffer()
	magic := uint16(99)
	w := New(b, Options{Magic: &magic, First: U(0xfffffff0)})
	d := new(Dir).At(324, Long, 1<<31, 0xdeadbeef).Raw(256, Type(77), 5, []byte{1})
	d.Next, d.EntryCount, d.Unsorted = U(8), U(0xffff), true
	p := w.Dir(d)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, le := b.Bytes(), binary.LittleEndian
	if le.Uint16(got[2:]) != 99 || le.Uint32(got[4:]) != 0xfffffff0 {
		t.Errorf("header % x", got[:8])
	}
	if le.Uint16(got[p.Offset:]) != 0xffff || le.Uint32(got[p.Next:]) != 8 {
		t.Error("entry count or next")
	}
	f := got[p.Fields[324]:]
	if le.Uint32(f[4:]) != 1<<31 || le.Uint32(f[8:]) != 0xdeadbeef {
		t.Errorf("entry % x", f[:12])
	}
	if le.Uint16(got[p.Fields[256]+2:]) != 77 {
		t.Error("type")
	}
}
