// Package j2kenc encodes JPEG 2000 codestreams.
package j2kenc

import "errors"

// Options is the form of the stream.
type Options struct{}

// Encode refuses for now.
func Encode(pix []byte, w, h, channels int, o Options) ([]byte, error) {
	return nil, errors.New("j2kenc: JPEG 2000 is not written yet")
}
