// Package vips asks a child process that holds libvips for the picture formats
// that the server itself can't write.
package vips

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Request is one picture to encode. On the wire: its length (uint32, little
// endian as all numbers), a fixed head, the ICC profile, the pixels.
type Request struct {
	Format        Format
	Quality       int // 1 to 100
	Lossless      bool
	Width, Height int
	Channels      int // 1, 3 or 4
	ICC           []byte
	Pix           []byte // rows without padding
}

// Format is what the child writes.
type Format uint8

// The formats of the child.
const (
	WebP Format = iota + 1
	PNG
	AVIF
)

const (
	headSize   = 20
	maxMessage = 1 << 28
)

// ErrMessage is a message that breaks the protocol.
var ErrMessage = errors.New("vips: malformed message")

// WriteRequest sends a request.
func WriteRequest(w io.Writer, r *Request) error {
	n := headSize + len(r.ICC) + len(r.Pix)
	if n > maxMessage || len(r.Pix) != r.Width*r.Height*r.Channels {
		return fmt.Errorf("%w: %dx%dx%d in %d bytes", ErrMessage, r.Width, r.Height, r.Channels, len(r.Pix))
	}
	head := make([]byte, 0, 4+headSize)
	head = binary.LittleEndian.AppendUint32(head, uint32(n))
	head = append(head, byte(r.Format), byte(r.Quality), 0, byte(r.Channels))
	if r.Lossless {
		head[6] = 1
	}
	head = binary.LittleEndian.AppendUint32(head, uint32(r.Width))
	head = binary.LittleEndian.AppendUint32(head, uint32(r.Height))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(r.ICC)))
	head = binary.LittleEndian.AppendUint32(head, 0)
	for _, b := range [][]byte{head, r.ICC, r.Pix} {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// ReadRequest receives one; io.EOF when the sender closed before its first byte.
func ReadRequest(from io.Reader) (*Request, error) {
	b, err := readMessage(from)
	if err != nil {
		return nil, err
	}
	if len(b) < headSize {
		return nil, ErrMessage
	}
	u := func(i int) int { return int(binary.LittleEndian.Uint32(b[i:])) }
	r := &Request{Format: Format(b[0]), Quality: int(b[1]), Lossless: b[2] == 1, Channels: int(b[3]), Width: u(4), Height: u(8)}
	icc, rest := u(12), len(b)-headSize
	if icc > rest || r.Width < 1 || r.Height < 1 || r.Width > maxMessage/r.Height || r.Channels > 4 ||
		rest-icc != r.Width*r.Height*r.Channels {
		return nil, ErrMessage
	}
	r.ICC, r.Pix = b[headSize:headSize+icc], b[headSize+icc:]
	return r, nil
}

// WriteAnswer sends what came of a request: the picture, or why there is none.
func WriteAnswer(w io.Writer, picture []byte, failure error) error {
	status, body := byte(0), picture
	if failure != nil {
		status, body = 1, []byte(failure.Error())
	}
	head := append(binary.LittleEndian.AppendUint32(nil, uint32(1+len(body))), status)
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// refusal is a failure that the child lived to tell.
type refusal string

func (r refusal) Error() string { return "vips: " + string(r) }

// ReadAnswer receives what came of a request.
func ReadAnswer(from io.Reader) ([]byte, error) {
	b, err := readMessage(from)
	switch {
	case err != nil:
		return nil, err
	case len(b) == 0:
		return nil, ErrMessage
	case b[0] != 0:
		return nil, refusal(b[1:])
	}
	return b[1:], nil
}

func readMessage(from io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > maxMessage {
		return nil, fmt.Errorf("%w: %d bytes", ErrMessage, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(from, b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return b, nil
}
