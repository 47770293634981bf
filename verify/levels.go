package verify

import (
	"context"
	"fmt"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/tiles"
)

// bandPixels bounds the part of a level that is held at once.
const bandPixels = 4 << 20

// levels compares every level above 0, whole.
func (c *comparison) levels(ctx context.Context) error {
	all := c.slide.Info().Levels
	if c.o.SkipLevels {
		return nil
	}
	for i := 1; i < len(all); i++ {
		part := Part{What: fmt.Sprintf("level %d whole, %dx%d", i, all[i].Width, all[i].Height)}
		if c.theirs[i] < 0 {
			part.Error = "OpenSlide has no such level"
			c.add(part)
			continue
		}
		if err := c.level(ctx, i, &part.Diff); err != nil {
			part.Error = err.Error()
		}
		c.add(part)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// level compares one level, band by band.
func (c *comparison) level(ctx context.Context, i int, h *Histogram) error {
	all := c.slide.Info().Levels
	l := all[i]
	rows := max(1, bandPixels/l.Width)
	for ly := int64(0); ly < l.Height; ly += rows {
		c.o.Progress(fmt.Sprintf("level %d", i), float64(ly)/float64(l.Height))
		n := int(min(rows, l.Height-ly))
		_, theirs, err := c.ref.ask(request{Op: "rows", Level: c.theirs[i], Y: ly, Width: int(l.Width), Height: n})
		if err != nil {
			return err
		}
		q := tiles.Region{
			L0Y: l0Of(ly, l.Height, all[0].Height), Width: int(l.Width), Height: n,
			Scale: tiles.Scale{Kind: tiles.ByLevel, Value: float64(i)},
		}
		if err := c.compare(ctx, h, q, theirs); err != nil {
			return fmt.Errorf("rows %d to %d: %w", ly, ly+int64(n), err)
		}
	}
	return nil
}

// l0Of is the level-0 coordinate that lands on l by the rule
// l = floor(l0 * levelSize / size0 + 1/2).
func l0Of(l, levelSize, size0 int64) int64 {
	l0 := (2*l*size0 + levelSize) / (2 * levelSize)
	for (2*l0*levelSize+size0)/(2*size0) > l {
		l0--
	}
	for (2*l0*levelSize+size0)/(2*size0) < l {
		l0++
	}
	return l0
}

// associated compares the images beside the slide, and that both have the same.
func (c *comparison) associated(ctx context.Context) error {
	ours := map[string]bool{}
	for _, a := range c.slide.Info().Associated {
		ours[a.Name] = true
	}
	for _, name := range c.ref.Associated {
		part := Part{What: "associated image " + name}
		if err := c.oneAssociated(ctx, name, &part.Diff); err != nil {
			part.Error = err.Error()
		}
		c.add(part)
		delete(ours, name)
	}
	for name := range ours {
		c.add(Part{What: "associated image " + name, Error: "OpenSlide has no such image"})
	}
	return ctx.Err()
}

func (c *comparison) oneAssociated(ctx context.Context, name string, h *Histogram) error {
	head, theirs, err := c.ref.ask(request{Op: "associated", Name: name})
	if err != nil {
		return err
	}
	a, err := c.reader.Associated(ctx, c.slide, name, tiles.PixelOptions{Format: microtome.FormatRaw})
	if err != nil {
		return err
	}
	if a.Width != head.Width || a.Height != head.Height {
		return fmt.Errorf("we have %dx%d, OpenSlide %dx%d", a.Width, a.Height, head.Width, head.Height)
	}
	p := microtome.NewHostPixels(a.Body, a.Width, a.Height, a.Channels, nil)
	return addPixels(h, p, theirs, c.background())
}
