package decode

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"

	"github.com/klauspost/compress/zlib"
)

// encodePNG writes 8-bit grey, RGB or RGBA, fast rather than small. An ICC
// profile goes into iCCP (PNG §11.3.2.3), right after the header chunk.
func encodePNG(pix []byte, stride, w, h, channels int, icc []byte) ([]byte, error) {
	var buf bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := enc.Encode(&buf, pictureOf(pix, stride, w, h, channels)); err != nil {
		return nil, err
	}
	if len(icc) == 0 {
		return buf.Bytes(), nil
	}
	chunk, err := iccp(icc)
	if err != nil {
		return nil, err
	}
	const head = 8 + 12 + 13 // signature, IHDR
	b := buf.Bytes()
	out := make([]byte, 0, len(b)+len(chunk))
	out = append(out, b[:head]...)
	out = append(out, chunk...)
	return append(out, b[head:]...), nil
}

// pictureOf wraps rows as an image; RGB is widened, since Go's encoder writes
// three samples of what is opaque.
func pictureOf(pix []byte, stride, w, h, channels int) image.Image {
	r := image.Rect(0, 0, w, h)
	switch channels {
	case 1:
		return &image.Gray{Pix: pix, Stride: stride, Rect: r}
	case 4:
		return &image.NRGBA{Pix: pix, Stride: stride, Rect: r}
	}
	m := image.NewRGBA(r)
	for y := range h {
		from, to := pix[y*stride:y*stride+3*w], m.Pix[y*m.Stride:]
		for i, o := 0, 0; i < len(from); i, o = i+3, o+4 {
			to[o], to[o+1], to[o+2], to[o+3] = from[i], from[i+1], from[i+2], 255
		}
	}
	return m
}

func iccp(icc []byte) ([]byte, error) {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	if _, err := z.Write(icc); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	body := append([]byte("iCCPicc\x00\x00"), packed.Bytes()...)
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)-4))
	out = append(out, body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body)), nil
}
