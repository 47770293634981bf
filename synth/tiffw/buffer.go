package tiffw

import (
	"errors"
	"io"
)

// Buffer is a file in memory: an io.WriteSeeker whose bytes can be had. The zero
// value is empty.
type Buffer struct {
	p   []byte
	pos int
}

// NewBuffer is an empty Buffer.
func NewBuffer() *Buffer { return new(Buffer) }

// Bytes is the content, shared with the Buffer until the next Write.
func (b *Buffer) Bytes() []byte { return b.p }

// Write writes at the current position, growing the content as needed.
func (b *Buffer) Write(p []byte) (int, error) {
	if end := b.pos + len(p); end > len(b.p) {
		b.p = append(b.p, make([]byte, end-len(b.p))...)
	}
	n := copy(b.p[b.pos:], p)
	b.pos += n
	return n, nil
}

// Seek moves the position; a gap past the end reads as zeros once written over.
func (b *Buffer) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += int64(b.pos)
	case io.SeekEnd:
		offset += int64(len(b.p))
	}
	if offset < 0 {
		return 0, errors.New("tiffw: seek before the start")
	}
	b.pos = int(offset)
	return offset, nil
}
