package web

import (
	"fmt"
	"image"
	"net/http"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/tiles"
	"github.com/microtome/microtome/web/deepzoom"
	"github.com/microtome/microtome/web/route"
)

var headerXML = []string{"application/xml"}

// zoomQuery is the query of a Deep Zoom address. Parameters it does not know
// are ignored: viewers add their own.
type zoomQuery struct {
	route.Pixels
	tile, overlap         int
	tileSeen, overlapSeen bool
}

func parseZoomQuery(raw string) (q zoomQuery, err error) {
	if raw == "" {
		return q, nil
	}
	var seen route.Once
	err = route.EachParam(raw, func(key, value string) (err error) {
		known := true
		switch key {
		case "tile":
			q.tile, err = deepzoom.Param(key, value)
			q.tileSeen = true
		case "overlap":
			q.overlap, err = deepzoom.Param(key, value)
			q.overlapSeen = true
		default:
			known, err = q.Set(key, value)
		}
		if err == nil && known {
			err = seen.See(key)
		}
		return err
	})
	return q, err
}

// pyramid is the virtual pyramid that a query asks for.
func (s *server) pyramid(info *microtome.Info, q *zoomQuery) (deepzoom.Pyramid, error) {
	f := frame(info, q.Bounds)
	p := deepzoom.Pyramid{Width: int64(f.Dx()), Height: int64(f.Dy())}
	p.Tile, p.Overlap = deepzoom.Default(info.Levels[0].Grid)
	if q.tileSeen {
		p.Tile = q.tile
	}
	if q.overlapSeen {
		p.Overlap = q.overlap
	}
	side := int64(p.Tile) + 2*int64(p.Overlap)
	if min(side, p.Width)*min(side, p.Height) > s.opt.MaxPixels {
		return p, fmt.Errorf("tiles of %d pixels a side: %w", side, microtome.ErrLimit)
	}
	return p, nil
}

// deepZoom answers /deepzoom/…: descriptors and tiles.
func (s *server) deepZoom(x *exchange, r *http.Request) error {
	x.route = routeDeepZoom
	rest, err := s.below(r, "/deepzoom/")
	if err != nil {
		return err
	}
	path, err := deepzoom.ParsePath(rest)
	if err != nil {
		return err
	}
	if path.Descriptor {
		x.route = routeDZI
	}
	q, err := parseZoomQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	o, err := s.open(x, r, path.ID)
	if err != nil {
		return err
	}
	defer o.handle.Release()
	z, err := s.pyramid(o.info, &q)
	if err != nil {
		return err
	}
	if path.Descriptor {
		return s.descriptor(x, r, o, z, &q)
	}
	q.Format = path.Format
	return s.zoomTile(x, r, o, z, &q, path)
}

func (s *server) descriptor(x *exchange, r *http.Request, o opened, z deepzoom.Pyramid, q *zoomQuery) error {
	format := q.Format
	switch format {
	case "":
		format = "jpeg"
	case "raw", "npy":
		return &microtome.Unsupported{Tag: "Deep Zoom format", Value: format}
	}
	var buf [96]byte
	b := canonical(buf[:0], 'x', &q.Pixels)
	b = appendInt(appendInt(b, int64(z.Tile)), int64(z.Overlap))
	if s.fresh(x, r, o, b, &q.Pixels) {
		return nil
	}
	x.Header()["Content-Type"] = headerXML
	return x.body(r, http.StatusOK, deepzoom.DZI(z, format))
}

func (s *server) zoomTile(x *exchange, r *http.Request, o opened, z deepzoom.Pyramid, q *zoomQuery, p deepzoom.Path) error {
	cell, err := z.Cell(p.Level, p.Col, p.Row)
	if err != nil {
		return err
	}
	po, err := pixelOptions(o.info, &q.Pixels)
	if err != nil {
		return err
	}
	var buf [96]byte
	b := canonical(buf[:0], 'd', &q.Pixels)
	for _, n := range [...]int{z.Tile, z.Overlap, p.Level, p.Col, p.Row} {
		b = appendInt(b, int64(n))
	}
	if s.fresh(x, r, o, b, &q.Pixels) {
		return nil
	}
	var a tiles.Answer
	if q.Bounds && o.info.Bounds != nil {
		a, err = s.opt.Reader.Region(r.Context(), o.slide, cellRegion(cell, *o.info.Bounds), po)
	} else {
		a, err = s.opt.Reader.View(r.Context(), o.slide, tiles.View(cell), po)
	}
	if err != nil {
		return err
	}
	return s.write(x, r, a)
}

// cellRegion is a tile of the pyramid of a part of the slide. The part's corner
// lies anywhere in a stored tile, so such tiles are always rendered.
func cellRegion(c deepzoom.Cell, part image.Rectangle) tiles.Region {
	down := int64(c.Downsample)
	return tiles.Region{
		L0X: int64(part.Min.X) + int64(c.Rect.Min.X)*down, L0Y: int64(part.Min.Y) + int64(c.Rect.Min.Y)*down,
		Width: c.Rect.Dx(), Height: c.Rect.Dy(), Scale: tiles.Scale{Kind: tiles.ByDownsample, Value: c.Downsample},
	}
}
