package tiles

import (
	"context"
	"fmt"
	"image"
	"math"

	"github.com/microtome/microtome"
)

// Associated returns an associated image, whole. Its own colour profile is
// embedded when o.ICC asks for one.
func (r *Reader) Associated(ctx context.Context, s microtome.Slide, name string, o PixelOptions) (Answer, error) {
	info := s.Info()
	p := r.associatedPicture(s, name, r.background(info, &o))
	if p == nil {
		return Answer{}, fmt.Errorf("associated image %q: %w", name, microtome.ErrNotFound)
	}
	k := r.pixelKey(info, askAssociated, 0, &o)
	k.name = name
	return r.answered(ctx, s, k, pixelCost(p.grid.Width, p.grid.Height), func(ctx context.Context) (*Answer, error) {
		all := image.Rect(0, 0, int(p.grid.Width), int(p.grid.Height))
		px, drawn, err := p.rectangle(ctx, all, access{priority: o.Priority, cache: r.once})
		if err != nil {
			return nil, err
		}
		defer px.Release()
		return r.encode(ctx, profileOf{s, name}, px, answerOf(px, drawn), &o)
	})
}

// profileOf is a slide whose profile is that of one of its associated images.
type profileOf struct {
	microtome.Slide
	name string
}

// ICCProfile returns the image's profile.
func (p profileOf) ICCProfile(ctx context.Context, _ string) ([]byte, error) {
	return p.Slide.ICCProfile(ctx, p.name)
}

func (r *Reader) associatedPicture(s microtome.Slide, name string, bg microtome.RGB) *picture {
	info := s.Info()
	for i := range info.Associated {
		if a := &info.Associated[i]; a.Name == name {
			return &picture{r: r, slide: s, info: info, grid: a.Grid, level: -1, name: name, bg: bg}
		}
	}
	return nil
}

// Thumbnail returns the whole slide, fit into size x size pixels and never
// enlarged, from the smallest level that suffices.
func (r *Reader) Thumbnail(ctx context.Context, s microtome.Slide, size int, o PixelOptions) (Answer, error) {
	if size <= 0 {
		return Answer{}, fmt.Errorf("a thumbnail of %d pixels: %w", size, microtome.ErrMalformed)
	}
	info := s.Info()
	n, err := plane(info, &o)
	if err != nil {
		return Answer{}, err
	}
	l0 := info.Levels[0]
	d := max(1, float64(max(l0.Width, l0.Height))/float64(size))
	side := func(full int64) int64 { return max(1, int64(math.Round(float64(full)/d))) }
	v := View{Downsample: d, Width: side(l0.Width), Height: side(l0.Height)}
	v.Rect = image.Rect(0, 0, int(v.Width), int(v.Height))
	if err := v.check(r.o.MaxPixels); err != nil {
		return Answer{}, err
	}
	return r.view(ctx, s, v, n, askThumbnail, &o)
}
