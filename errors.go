package microtome

import (
	"errors"
	"fmt"
)

// The kinds of failure. They are wrapped with the place ("level 2: tile 3,4:
// …") and told apart by errors.Is; web turns each into a status in one
// function.
var (
	// ErrCorrupt: the file or stream breaks its own format.
	ErrCorrupt = errors.New("corrupt")
	// ErrUnsupported: valid, but not something we read. See Unsupported.
	ErrUnsupported = errors.New("unsupported")
	// ErrLimit: over a configured bound of memory, size or count.
	ErrLimit = errors.New("over a limit")
	// ErrNotFound: no such slide, level, tile or associated image.
	ErrNotFound = errors.New("not found")
	// ErrEmptyTile: the tile is sparse: nothing is stored there.
	ErrEmptyTile = errors.New("empty tile")
	// ErrMalformed: the request itself makes no sense.
	ErrMalformed = errors.New("malformed request")
	// ErrUnanswerable: well-formed, but this slide can't answer it (mpp asked
	// of a slide that has none).
	ErrUnanswerable = errors.New("the slide cannot answer that")
	// ErrForbidden: closed by configuration (label and macro).
	ErrForbidden = errors.New("forbidden")
	// ErrSource: the bytes could not be read.
	ErrSource = errors.New("source failed")
	// ErrBusy: the queue is full; ask again later.
	ErrBusy = errors.New("busy")
)

// Unsupported is an ErrUnsupported that names the tag and its value.
type Unsupported struct {
	Tag   string // "Compression", "BitsPerSample", "SOF"
	Value string // "200", "12", "progressive (SOF2)"
}

func (u *Unsupported) Error() string {
	return fmt.Sprintf("unsupported %s %s", u.Tag, u.Value)
}

// Is makes errors.Is(err, ErrUnsupported) hold.
func (u *Unsupported) Is(target error) bool { return target == ErrUnsupported }
