// Package tiffw writes TIFF and BigTIFF files entry by entry, well formed or
// deliberately broken: it checks nothing and writes what it is told.
//
// A file is blocks of data and directories in the order of the calls:
//
//	b := tiffw.NewBuffer()
//	w := tiffw.New(b, tiffw.Options{Big: true, Order: binary.BigEndian})
//	off := w.Block(tile)
//	d := new(tiffw.Dir).Short(256, 240).Short(257, 240).Long8(324, uint64(off)).Long(325, uint32(len(tile)))
//	w.Dir(d)                   // chained; w.SubDir(d) writes without chaining
//	err := w.Close()           // links the chain; b.Bytes() is the file
package tiffw

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Options is the form of the file. The zero value is a little-endian classic
// TIFF. The pointers override header fields.
type Options struct {
	Big   bool
	Order binary.ByteOrder // nil: little-endian
	// Mark overrides the two bytes "II" or "MM".
	Mark string
	// Magic overrides the version, 42 or 43.
	Magic *uint16
	// OffsetSize and Reserved override BigTIFF's two constants, 8 and 0.
	OffsetSize, Reserved *uint16
	// First overrides the offset of the first directory.
	First *uint64
}

// Writer appends to one file. Errors stick: the first one makes later calls do
// nothing, and Close returns it. Not safe for concurrent use.
type Writer struct {
	ws      io.WriteSeeker
	buf     *bufio.Writer
	o       Options
	order   byteOrder
	pos     int64
	link    int64 // where the next chained directory's offset belongs
	patches []patch
	err     error
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

type patch struct {
	at int64
	p  []byte
}

// New starts a file at ws's beginning and writes its header.
func New(ws io.WriteSeeker, o Options) *Writer {
	w := &Writer{ws: ws, buf: bufio.NewWriterSize(ws, 1<<20), o: o, order: binary.LittleEndian}
	mark, magic := "II", uint16(42)
	if o.Order != nil && o.Order.Uint16([]byte{0, 1}) == 1 {
		mark, w.order = "MM", binary.BigEndian
	}
	if o.Mark != "" {
		mark = o.Mark
	}
	if o.Big {
		magic = 43
	}
	h := append([]byte(mark), w.bytes(pick(o.Magic, magic))...)
	if o.Big {
		h = append(h, w.bytes(pick(o.OffsetSize, 8))...)
		h = append(h, w.bytes(pick(o.Reserved, 0))...)
	}
	w.link = int64(len(h))
	var first uint64
	if o.First != nil {
		first = *o.First
	}
	w.write(append(h, w.Word(first)...))
	if o.First != nil {
		w.link = -1
	}
	return w
}

func pick(o *uint16, v uint16) uint16 {
	if o != nil {
		return *o
	}
	return v
}

func (w *Writer) bytes(v uint16) []byte { return w.order.AppendUint16(nil, v) }

// Word is v as the file writes offsets and counts: 4 bytes, in BigTIFF 8.
func (w *Writer) Word(v uint64) []byte {
	if w.o.Big {
		return w.order.AppendUint64(nil, v)
	}
	return w.order.AppendUint32(nil, uint32(v))
}

// Order is the file's byte order.
func (w *Writer) Order() binary.ByteOrder { return w.order }

// Pos is the offset of the next byte that is written.
func (w *Writer) Pos() int64 { return w.pos }

// Err is the first error so far.
func (w *Writer) Err() error { return w.err }

// Fail makes err the writer's error unless it has one.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *Writer) write(p []byte) {
	if w.err != nil {
		return
	}
	n, err := w.buf.Write(p)
	w.pos += int64(n)
	w.Fail(err)
}

// Block appends raw bytes and returns their offset.
func (w *Writer) Block(p []byte) int64 {
	off := w.pos
	w.write(p)
	return off
}

// Align pads with zeros to a multiple of n bytes.
func (w *Writer) Align(n int64) {
	if r := w.pos % n; r != 0 {
		w.write(make([]byte, n-r))
	}
}

// Patch overwrites bytes already written, at Close.
func (w *Writer) Patch(at int64, p []byte) {
	w.patches = append(w.patches, patch{at, append([]byte(nil), p...)})
}

// Placed says where a written directory and its values lie.
type Placed struct {
	Offset int64            // of the directory
	Next   int64            // of its next-directory field
	Values map[uint16]int64 // by tag: of the value, in the entry or out of line
	Fields map[uint16]int64 // by tag: of the 12 or 20 byte entry
}

// Dir writes a directory with its out-of-line values and appends it to the
// chain of the file.
func (w *Writer) Dir(d *Dir) Placed {
	p := w.SubDir(d)
	if w.link >= 0 {
		w.Patch(w.link, w.Word(uint64(p.Offset)))
	}
	w.link = p.Next
	if d.Next != nil {
		w.link = -1
	}
	return p
}

// SubDir writes a directory outside the chain, to be pointed at by tag 330.
func (w *Writer) SubDir(d *Dir) Placed {
	p := Placed{Values: map[uint16]int64{}, Fields: map[uint16]int64{}}
	es := d.sorted()
	fields := make([][]byte, len(es))
	for i, e := range es {
		fields[i] = w.place(e, &p)
	}
	w.Align(2)
	p.Offset = w.pos
	n := uint64(len(es))
	if d.EntryCount != nil {
		n = *d.EntryCount
	}
	if w.o.Big {
		w.write(w.order.AppendUint64(nil, n))
	} else {
		w.write(w.order.AppendUint16(nil, uint16(n)))
	}
	for i, e := range es {
		p.Fields[e.Tag] = w.pos
		h := w.order.AppendUint16(w.bytes(e.Tag), uint16(e.Type))
		h = append(h, w.Word(e.Count)...)
		if _, out := p.Values[e.Tag]; !out {
			p.Values[e.Tag] = w.pos + int64(len(h))
		}
		w.write(append(h, fields[i]...))
	}
	p.Next = w.pos
	var next uint64
	if d.Next != nil {
		next = *d.Next
	}
	w.write(w.Word(next))
	return p
}

// place stores an entry's value out of line if it must, and returns the value
// field.
func (w *Writer) place(e Entry, p *Placed) []byte {
	if e.Offset != nil {
		return w.Word(*e.Offset)
	}
	v, err := e.encode(w.order)
	w.Fail(err)
	size := len(w.Word(0))
	if len(v) > size || e.OutOfLine {
		w.Align(2)
		p.Values[e.Tag] = w.pos
		return w.Word(uint64(w.Block(v)))
	}
	return append(append(make([]byte, 0, size), v...), make([]byte, size-len(v))...)
}

// Close applies the patches and flushes; it does not close the underlying
// writer, which is left at the file's end.
func (w *Writer) Close() error {
	if w.err == nil {
		w.Fail(w.buf.Flush())
	}
	for _, p := range w.patches {
		if w.err != nil {
			return w.err
		}
		_, err := w.ws.Seek(p.at, io.SeekStart)
		w.Fail(err)
		if err == nil {
			_, err = w.ws.Write(p.p)
			w.Fail(err)
		}
	}
	w.patches = nil
	_, err := w.ws.Seek(w.pos, io.SeekStart)
	w.Fail(err)
	return w.err
}
