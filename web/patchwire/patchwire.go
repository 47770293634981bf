// Package patchwire is how a batch of patches stands in an answer's body: the
// raw format's header and statuses, a NumPy header, and rows in either layout.
package patchwire

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/microtome/microtome"
)

// Shape is the array of a batch: N patches of Height x Width pixels, Channels
// samples of Type each.
type Shape struct {
	N, Height, Width, Channels int
	Planar                     bool  // NCHW instead of NHWC
	Fill                       uint8 // of failed items, before LUT
	Type                       microtome.DataType
	LUT                        *microtome.LUT // makes Type of uint8; nil for Uint8
}

// ItemBytes is the size of one patch.
func (s Shape) ItemBytes() int64 {
	return int64(s.Height) * int64(s.Width) * int64(s.Channels) * int64(s.Type.Bytes())
}

// Status is what became of one patch.
type Status struct {
	Code  int   // as an HTTP status: 200, 404, 422, …
	Made  uint8 // 0 stored, 1 cropped, 2 rendered, 3 empty; NotMade
	Hit   bool  // everything it needed was in the cache
	Level int   // the level that its pixels came from
	// Engine decoded it: 0 none, 1 the CPU, 2 a GPU.
	Engine uint8
}

// NotMade is the Made of a failed patch.
const NotMade = 255

// Magic begins a raw body.
const Magic = "MTPATCH1"

const (
	headBytes   = 64
	statusBytes = 8
)

// RawBytes is the length of a raw body.
func (s Shape) RawBytes() int64 {
	return headBytes + int64(s.N)*(statusBytes+s.ItemBytes())
}

// AppendHead appends the raw format's header, all little endian. failed is how
// many patches failed, -1 when that isn't known yet; last says that the statuses
// stand behind the pixels:
//
//	 0  8  "MTPATCH1"
//	 8  4  bytes of this header: 64
//	12  4  n, patches
//	16  4  height
//	20  4  width
//	24  4  channels
//	28  1  type of a sample: 0 is uint8, 1 float16, 2 bfloat16, 3 float32
//	29  1  layout: 0 is NHWC, 1 is NCHW
//	30  1  fill value of failed patches, before it is made a float
//	31  1  0
//	32  4  failed patches; 2^32 - 1: see the statuses
//	36  4  0
//	40  8  where the statuses begin
//	48  8  where the pixels begin
//	56  8  bytes of pixels
func AppendHead(b []byte, s Shape, failed int, last bool) []byte {
	le := binary.LittleEndian
	b = append(b, Magic...)
	for _, n := range []int{headBytes, s.N, s.Height, s.Width, s.Channels} {
		b = le.AppendUint32(b, uint32(n))
	}
	b = append(b, byte(s.Type), flag(s.Planar), s.Fill, 0)
	b = le.AppendUint32(b, uint32(failed))
	b = le.AppendUint32(b, 0)
	pixels := uint64(int64(s.N) * s.ItemBytes())
	if last {
		b = le.AppendUint64(b, headBytes+pixels)
		b = le.AppendUint64(b, headBytes)
	} else {
		b = le.AppendUint64(b, headBytes)
		b = le.AppendUint64(b, uint64(headBytes+statusBytes*s.N))
	}
	return le.AppendUint64(b, pixels)
}

// AppendStatuses appends a status of 8 bytes for each patch: the code in 2, how
// it was made in 1 (see Status), 1 when all it needed was cached in 1, the level
// in 2, the engine in 1, 0 in 1.
func AppendStatuses(b []byte, statuses []Status) []byte {
	le := binary.LittleEndian
	for _, st := range statuses {
		b = le.AppendUint16(b, uint16(st.Code))
		b = append(b, st.Made, flag(st.Hit))
		b = le.AppendUint16(b, uint16(st.Level))
		b = append(b, st.Engine, 0)
	}
	return b
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// AppendNPY appends NumPy's header of the array.
func AppendNPY(b []byte, s Shape) []byte {
	if s.Planar {
		return microtome.AppendNPYHeader(b, s.Type, s.N, s.Channels, s.Height, s.Width)
	}
	return microtome.AppendNPYHeader(b, s.Type, s.N, s.Height, s.Width, s.Channels)
}

// Failed counts the statuses that are not 200.
func Failed(statuses []Status) (n int) {
	for _, st := range statuses {
		if st.Code != 200 {
			n++
		}
	}
	return n
}

// Failures lists what failed, as "5:422, 9:404": the item and its code. It stops
// with "..." before it is longer than most.
func Failures(statuses []Status, most int) string {
	var b []byte
	for i, st := range statuses {
		if st.Code == 200 {
			continue
		}
		if len(b) > most-24 {
			return string(b) + ", ..."
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(st.Code), 10)
	}
	return string(b)
}

// WriteItem writes the rows of a patch, 8-bit samples, in the shape's layout and
// type. What has to be copied for that goes through buf, which must not be empty,
// and for floats hold a pixel (12 bytes do).
func WriteItem(w io.Writer, buf, pix []byte, stride int, s Shape) error {
	if s.LUT != nil {
		return writeFloats(w, buf, pix, stride, s)
	}
	n := s.Width * s.Channels
	switch {
	case stride == n && (!s.Planar || s.Channels == 1):
		_, err := w.Write(pix[:s.ItemBytes()])
		return err
	case s.ItemBytes() <= int64(len(buf)) && s.Planar:
		planar(buf, pix, stride, s)
		_, err := w.Write(buf[:s.ItemBytes()])
		return err
	}
	out := chunk{w: w, buf: buf}
	if !s.Planar {
		for y := range s.Height {
			out.row(pix[y*stride:][:n], 1)
		}
		return out.flush()
	}
	for c := range s.Channels {
		for y := range s.Height {
			out.row(pix[y*stride+c:][:n-c], s.Channels)
		}
	}
	return out.flush()
}

// WriteFill writes the patch that stands for one that failed.
func WriteFill(w io.Writer, buf []byte, s Shape) error {
	if s.LUT != nil {
		return fillFloats(w, buf, s)
	}
	left := s.ItemBytes()
	fill := buf[:min(left, int64(len(buf)))]
	for i := range fill {
		fill[i] = s.Fill
	}
	return repeat(w, fill, left)
}

// repeat writes fill again and again, until so many bytes are written.
func repeat(w io.Writer, fill []byte, left int64) error {
	for left > 0 {
		n, err := w.Write(fill[:min(left, int64(len(fill)))])
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// chunk gathers samples, and writes them whenever its buffer is full.
type chunk struct {
	w   io.Writer
	buf []byte
	n   int
	err error
}

// row takes every step-th sample of a row, from the first on.
func (c *chunk) row(row []byte, step int) {
	for len(row) > 0 && c.err == nil {
		if c.n == len(c.buf) {
			_ = c.flush()
		}
		to := c.buf[c.n:]
		if step == 1 {
			n := copy(to, row)
			row, c.n = row[n:], c.n+n
			continue
		}
		n := min(len(to), (len(row)+step-1)/step)
		for i := range n {
			to[i] = row[i*step]
		}
		row, c.n = row[min(n*step, len(row)):], c.n+n
	}
}

func (c *chunk) flush() error {
	if c.err == nil && c.n > 0 {
		_, c.err = c.w.Write(c.buf[:c.n])
	}
	c.n = 0
	return c.err
}

// planar writes interleaved rows of three samples as planes, one after the other.
func planar(out, pix []byte, stride int, s Shape) {
	width, plane := s.Width, s.Width*s.Height
	for y := range s.Height {
		row := pix[y*stride:]
		if s.Channels == 1 {
			copy(out[y*width:][:width], row)
			continue
		}
		row = row[:3*width]
		r, g, b := out[y*width:][:width], out[plane+y*width:][:width], out[2*plane+y*width:][:width]
		for x := range width {
			r[x], g[x], b[x] = row[3*x], row[3*x+1], row[3*x+2]
		}
	}
}
