package jpegenc

import "math/bits"

// bitWriter packs codes into bytes, a zero after every 0xff (T.81 F.1.2.3).
type bitWriter struct {
	dst []byte
	acc uint64
	n   uint
}

func (w *bitWriter) put(v uint32, n uint) {
	w.acc = w.acc<<n | uint64(v)
	w.n += n
	for w.n >= 8 {
		w.n -= 8
		b := byte(w.acc >> w.n)
		w.dst = append(w.dst, b)
		if b == 0xff {
			w.dst = append(w.dst, 0)
		}
	}
}

// flush fills the last byte with ones.
func (w *bitWriter) flush() {
	if r := w.n % 8; r != 0 {
		w.put(1<<(8-r)-1, 8-r)
	}
}

// value writes a coefficient's magnitude bits after its code (T.81 F.1.2.1.1).
func (w *bitWriter) value(c code, v int32, size uint) {
	if v < 0 {
		v += 1<<size - 1
	}
	w.put(uint32(c.bits)<<size|uint32(v), uint(c.n)+size)
}

// size is the number of magnitude bits (T.81 table F.1).
func size(v int32) uint {
	if v < 0 {
		v = -v
	}
	return uint(bits.Len32(uint32(v)))
}

// scan appends the entropy-coded data of the loaded planes.
func (e *Encoder) scan(dst []byte, w, h int) []byte {
	out := bitWriter{dst: dst}
	cols := (w + 8*e.hMax - 1) / (8 * e.hMax)
	rows := (h + 8*e.vMax - 1) / (8 * e.vMax)
	var pred [4]int32
	for mcu := range cols * rows {
		if e.o.Restart > 0 && mcu > 0 && mcu%e.o.Restart == 0 {
			out.flush()
			out.dst = append(out.dst, 0xff, markerRST0+byte((mcu/e.o.Restart-1)%8))
			pred = [4]int32{}
		}
		mx, my := mcu%cols, mcu/cols
		for i, c := range e.comps {
			for k := range c.h * c.v {
				x, y := mx*c.h+k%c.h, my*c.v+k/c.h
				pred[i] = e.block(&out, &e.planes[i], 8*x, 8*y, c.table, pred[i])
			}
		}
	}
	out.flush()
	return out.dst
}

// block codes one 8x8 block and returns its DC value (T.81 F.1.2).
func (e *Encoder) block(out *bitWriter, p *plane, x, y, table int, pred int32) int32 {
	var b block
	for j := range 8 {
		row := p.pix[(y+j)*p.stride+x:][:8]
		for i, v := range row {
			b[8*j+i] = int32(v) - 128
		}
	}
	b.fdct()
	div, ac := &e.div[table], &e.ac[table]
	dc := div[0].quantize(b[0])
	n := size(dc - pred)
	out.value(e.dc[table][n], dc-pred, n)
	run := 0
	for k := 1; k < 64; k++ {
		v := div[k].quantize(b[zigzag[k]])
		if v == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			out.put(uint32(ac[0xf0].bits), uint(ac[0xf0].n))
		}
		n := size(v)
		out.value(ac[run<<4|int(n)], v, n)
		run = 0
	}
	if run > 0 {
		out.put(uint32(ac[0].bits), uint(ac[0].n))
	}
	return dc
}
