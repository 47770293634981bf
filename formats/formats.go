// Package formats recognizes a slide, maps its directories to levels and
// associated images, and reports its properties under OpenSlide's names.
package formats

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
)

// Options sets the bounds under which slides are opened. The zero value works.
type Options struct{ Limits Limits }

// Limits bounds what an untrusted file can make the server hold. Zero means
// the default.
type Limits struct {
	TIFF tiff.Limits
	// XMLBytes is the longest OME-XML block that is read: 16 MiB.
	XMLBytes int64
	// Planes is the most planes of one image: 65,536.
	Planes int
}

func (l Limits) withDefaults() Limits {
	if l.XMLBytes == 0 {
		l.XMLBytes = 16 << 20
	}
	if l.Planes == 0 {
		l.Planes = 1 << 16
	}
	return l
}

// input is what a format is recognized by: the directories, and the first one's
// description, read once.
type input struct {
	*tiff.File
	main   *tiff.Dir
	text   string
	limits Limits
}

// format is one row of the table: detect says whether a file is of this
// format, layout maps its directories.
type format struct {
	name   string
	detect func(*input) bool
	layout func(*input) (*layout, error)
}

// table lists the formats, most specific first.
func table() []format {
	return []format{
		{"another vendor's", detectForeign, refuseForeign},
		{"aperio", detectAperio, layoutAperio},
		{"ome-tiff", detectOME, layoutOME},
		{"generic-tiff", func(*input) bool { return true }, layoutGeneric},
	}
}

// Open recognizes the format of src and opens it. The slide owns src from then
// on and closes it with itself; when Open fails the caller still does.
//
// It reads the directories, never a tile. It fails with ErrUnsupported (naming
// tag and value) for what is valid but not read, ErrCorrupt, ErrLimit or
// ErrSource.
func Open(ctx context.Context, src microtome.Source, o Options) (microtome.Slide, error) {
	if err := checkSignature(ctx, src); err != nil {
		return nil, err
	}
	limits := o.Limits.withDefaults()
	watched := &watch{Source: src}
	file, err := tiff.Parse(ctx, watched, limits.TIFF)
	if err != nil {
		return nil, err
	}
	s, err := openFile(ctx, watched, file, limits)
	if failed := watched.since(0); failed != nil {
		return nil, failed // whatever was made of what could be read
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openFile lays a parsed file out by the first format that takes it.
func openFile(ctx context.Context, src *watch, file *tiff.File, limits Limits) (*slide, error) {
	main := file.Dirs[0]
	in := &input{File: file, main: main, text: description(main), limits: limits}
	for _, f := range table() {
		if !f.detect(in) {
			continue
		}
		l, err := f.layout(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		return newSlide(ctx, src, file, l)
	}
	return nil, &microtome.Unsupported{Tag: "format", Value: "unknown"}
}
