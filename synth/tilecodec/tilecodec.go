// Package tilecodec compresses tiles without loss as TIFF stores them: deflate,
// LZW, PackBits and zstd, with or without horizontal differencing.
package tilecodec

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// TIFF compression numbers.
const (
	None         = 1
	LZWCode      = 5
	Deflate      = 8
	OldDeflate   = 32946
	PackBitsCode = 32773
	Zstd         = 50000
)

// Encode compresses a tile of 8-bit samples by its TIFF compression number; with
// predict the samples are differenced first. The result is new memory.
func Encode(compression int, pix []byte, width, channels int, predict bool) ([]byte, error) {
	pix = bytes.Clone(pix)
	if predict {
		Predict(pix, width, channels)
	}
	switch compression {
	case None:
		return pix, nil
	case LZWCode:
		return LZW(nil, pix), nil
	case PackBitsCode:
		return PackBits(nil, pix, width*channels), nil
	case Deflate, OldDeflate:
		return deflate(pix)
	case Zstd:
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("tilecodec: zstd: %w", err)
		}
		return w.EncodeAll(pix, nil), nil
	}
	return nil, fmt.Errorf("tilecodec: compression %d is not written", compression)
}

func deflate(pix []byte) ([]byte, error) {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(pix); err != nil {
		return nil, fmt.Errorf("tilecodec: deflate: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("tilecodec: deflate: %w", err)
	}
	return b.Bytes(), nil
}
