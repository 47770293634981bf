package patchwire

import (
	"encoding/binary"
	"io"

	"github.com/microtome/microtome"
)

// writeFloats writes the rows of a patch through the shape's table, little endian.
func writeFloats(w io.Writer, buf, pix []byte, stride int, s Shape) error {
	out := floats{w: w, buf: buf, size: s.Type.Bytes()}
	n := s.Width * s.Channels
	if s.Channels == 3 && !s.Planar {
		for y := range s.Height {
			out.pixels(pix[y*stride:][:n], s.LUT)
		}
		return out.flush()
	}
	for c := range s.Channels {
		for y := range s.Height {
			out.samples(pix[y*stride+c:][:n-c], s.Channels, &s.LUT[c])
		}
	}
	return out.flush()
}

// fillFloats writes the patch that stands for one that failed: each sample is what
// the table makes of the fill value.
func fillFloats(w io.Writer, buf []byte, s Shape) error {
	size := s.Type.Bytes()
	var pixel []byte
	for c := range s.Channels {
		word := binary.LittleEndian.AppendUint32(nil, s.LUT[c][s.Fill])
		pixel = append(pixel, word[:size]...)
	}
	parts, each := 1, len(pixel)
	if s.Planar {
		parts, each = s.Channels, size
	}
	for i := range parts {
		left := s.ItemBytes() / int64(parts)
		fill := buf[:min(left, int64(len(buf)/each*each))]
		for n := copy(fill, pixel[i*each:][:each]); n < len(fill); n *= 2 {
			copy(fill[n:], fill[:n])
		}
		if err := repeat(w, fill, left); err != nil {
			return err
		}
	}
	return nil
}

// floats gathers samples that a table made, and writes them whenever its buffer
// is full.
type floats struct {
	w    io.Writer
	buf  []byte
	n    int
	size int // of a sample: 2 or 4
	err  error
}

// pixels takes a row of pixels of three samples.
func (f *floats) pixels(row []byte, lut *microtome.LUT) {
	for len(row) > 0 && f.err == nil {
		n := f.room(3*f.size, len(row)/3)
		if to := f.buf[f.n:]; f.size == 2 {
			halfPixels(to, row[:3*n], lut)
		} else {
			wordPixels(to, row[:3*n], lut)
		}
		row, f.n = row[3*n:], f.n+3*n*f.size
	}
}

// samples takes every step-th sample of a row, from the first on.
func (f *floats) samples(row []byte, step int, table *[256]uint32) {
	for len(row) > 0 && f.err == nil {
		n := f.room(f.size, (len(row)+step-1)/step)
		if to := f.buf[f.n:][:n*f.size]; f.size == 2 {
			halfs(to, row, step, table)
		} else {
			words(to, row, step, table)
		}
		row, f.n = row[min(n*step, len(row)):], f.n+n*f.size
	}
}

// room is how many of n things of so many bytes fit in the buffer, once it is
// written when it is full.
func (f *floats) room(bytes, n int) int {
	if len(f.buf)-f.n < bytes {
		_ = f.flush()
	}
	return min(n, (len(f.buf)-f.n)/bytes)
}

func (f *floats) flush() error {
	if f.err == nil && f.n > 0 {
		_, f.err = f.w.Write(f.buf[:f.n])
	}
	f.n = 0
	return f.err
}

func halfPixels(to, row []byte, lut *microtome.LUT) {
	r, g, b := &lut[0], &lut[1], &lut[2]
	for len(row) >= 3 && len(to) >= 6 {
		binary.LittleEndian.PutUint16(to, uint16(r[row[0]]))
		binary.LittleEndian.PutUint16(to[2:], uint16(g[row[1]]))
		binary.LittleEndian.PutUint16(to[4:], uint16(b[row[2]]))
		row, to = row[3:], to[6:]
	}
}

func wordPixels(to, row []byte, lut *microtome.LUT) {
	r, g, b := &lut[0], &lut[1], &lut[2]
	for len(row) >= 3 && len(to) >= 12 {
		binary.LittleEndian.PutUint32(to, r[row[0]])
		binary.LittleEndian.PutUint32(to[4:], g[row[1]])
		binary.LittleEndian.PutUint32(to[8:], b[row[2]])
		row, to = row[3:], to[12:]
	}
}

// halfs fills to with every step-th sample of a row; four at a time cost less than
// one by one.
func halfs(to, row []byte, step int, table *[256]uint32) {
	for ; len(to) >= 8; to = to[8:] {
		four := row[: 3*step+1 : 3*step+1]
		binary.LittleEndian.PutUint16(to, uint16(table[four[0]]))
		binary.LittleEndian.PutUint16(to[2:], uint16(table[four[step]]))
		binary.LittleEndian.PutUint16(to[4:], uint16(table[four[2*step]]))
		binary.LittleEndian.PutUint16(to[6:], uint16(table[four[3*step]]))
		row = row[min(4*step, len(row)):]
	}
	for ; len(to) >= 2; to = to[2:] {
		binary.LittleEndian.PutUint16(to, uint16(table[row[0]]))
		row = row[min(step, len(row)):]
	}
}

func words(to, row []byte, step int, table *[256]uint32) {
	for ; len(to) >= 16; to = to[16:] {
		four := row[: 3*step+1 : 3*step+1]
		binary.LittleEndian.PutUint32(to, table[four[0]])
		binary.LittleEndian.PutUint32(to[4:], table[four[step]])
		binary.LittleEndian.PutUint32(to[8:], table[four[2*step]])
		binary.LittleEndian.PutUint32(to[12:], table[four[3*step]])
		row = row[min(4*step, len(row)):]
	}
	for ; len(to) >= 4; to = to[4:] {
		binary.LittleEndian.PutUint32(to, table[row[0]])
		row = row[min(step, len(row)):]
	}
}
