//go:build cgo && linux

package native

/*
#include <stddef.h>
#include "message.h"
*/
import "C"

import (
	"unsafe"

	"github.com/microtome/microtome/decode/gpu/wire"
)

// layout is a size or a place on both sides.
type layout struct {
	what      string
	inGo, inC uintptr
}

// layouts lists what must be equal, for the test: cgo is not allowed in tests.
func layouts(m wire.Message, t wire.Tile, u wire.Upload, o wire.Out, p wire.Piece, s wire.Scale) []layout {
	var (
		cm C.mt_message
		ct C.mt_tile
		co C.mt_out
		cp C.mt_piece
		cs C.mt_scale
	)
	return []layout{
		{"message", unsafe.Sizeof(m), unsafe.Sizeof(cm)},
		{"message.copy_src", unsafe.Offsetof(m.CopySrc), unsafe.Offsetof(cm.copy_src)},
		{"message.status", unsafe.Offsetof(m.Status), unsafe.Offsetof(cm.status)},
		{"message.nanos", unsafe.Offsetof(m.Nanos), unsafe.Offsetof(cm.nanos)},
		{"message.error", unsafe.Offsetof(m.Error), unsafe.Offsetof(cm.error)},
		{"tile", unsafe.Sizeof(t), unsafe.Sizeof(ct)},
		{"tile.src_len", unsafe.Offsetof(t.SrcLen), unsafe.Offsetof(ct.src_len)},
		{"tile.css", unsafe.Offsetof(t.CSS), unsafe.Offsetof(ct.css)},
		{"tile.status", unsafe.Offsetof(t.Status), unsafe.Offsetof(ct.status)},
		{"upload", unsafe.Sizeof(u), unsafe.Sizeof(C.mt_upload{})},
		{"out", unsafe.Sizeof(o), unsafe.Sizeof(co)},
		{"out.channels", unsafe.Offsetof(o.Channels), unsafe.Offsetof(co.channels)},
		{"out.rgb", unsafe.Offsetof(o.RGB), unsafe.Offsetof(co.rgb)},
		{"out.lut", unsafe.Offsetof(o.LUT), unsafe.Offsetof(co.lut)},
		{"piece", unsafe.Sizeof(p), unsafe.Sizeof(cp)},
		{"piece.channels", unsafe.Offsetof(p.Channels), unsafe.Offsetof(cp.channels)},
		{"piece.sx", unsafe.Offsetof(p.SX), unsafe.Offsetof(cp.sx)},
		{"piece.dx", unsafe.Offsetof(p.DX), unsafe.Offsetof(cp.dx)},
		{"scale", unsafe.Sizeof(s), unsafe.Sizeof(cs)},
		{"scale.line", unsafe.Offsetof(s.Line), unsafe.Offsetof(cs.line)},
	}
}
