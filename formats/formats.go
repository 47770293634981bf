// Package formats recognizes a slide, maps its directories to levels and
// associated images, and reports its properties under OpenSlide's names.
package formats

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
)

// Options sets the bounds under which slides are opened. The zero value works.
type Options struct{}

// Open recognizes the format of src and opens it. The slide owns src from then
// on and closes it with itself; when Open fails the caller still does.
//
// It fails with ErrUnsupported (naming tag and value) for what is valid but
// not read, ErrCorrupt, ErrLimit or ErrSource.
func Open(ctx context.Context, src microtome.Source, o Options) (microtome.Slide, error) {
	return nil, fmt.Errorf("formats: %w", &microtome.Unsupported{Tag: "format", Value: "any"})
}
