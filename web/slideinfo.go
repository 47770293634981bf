package web

import (
	"fmt"
	"image"
	"math"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/tiles"
	"github.com/microtome/microtome/web/deepzoom"
	"github.com/microtome/microtome/web/route"
)

// codecNames are by microtome.Codec.
var codecNames = [...]string{
	microtome.CodecNone: "none", microtome.CodecJPEG: "jpeg", microtome.CodecJPEG2000: "jpeg2000",
	microtome.CodecDeflate: "deflate", microtome.CodecLZW: "lzw", microtome.CodecPackBits: "packbits",
	microtome.CodecZstd: "zstd",
}

// slideInfo answers /slides/{id}.
func (s *server) slideInfo(x *exchange, r *http.Request, id string) error {
	o, err := s.open(x, r, id)
	if err != nil {
		return err
	}
	defer o.handle.Release()
	out := s.describe(x.prefix, id, o.info)
	all, err := o.slide.Properties(r.Context())
	switch f := explain(err, id); {
	case err == nil:
	case f.status == http.StatusUnprocessableEntity || f.status == http.StatusUnsupportedMediaType:
		// A broken part of the file hides its properties, not the slide.
		out.Warnings = append(slices.Clip(out.Warnings), "properties: "+f.message)
	default:
		return err
	}
	out.Properties = all
	if !s.opt.OpenProperties {
		out.Properties, out.Hidden = filterProperties(all)
	}
	if done, total, building := s.opt.Reader.Progress(o.slide); building {
		out.Building = &buildingJSON{jsonInt(done), jsonInt(total)}
	}
	return s.writeDocument(x, r, out)
}

// describe is what a slide's Info says, with the addresses of its parts.
func (s *server) describe(prefix, id string, info *microtome.Info) *slideJSON {
	at := prefix + "/slides/" + route.EscapeID(id)
	v := "?v=" + info.Generation.ID
	g := info.Levels[0].Grid
	out := &slideJSON{
		ID: id, Name: path.Base(id), Format: info.Format,
		Generation: info.Generation.ID, Bytes: jsonInt(info.Generation.Size),
		Modified: info.Generation.ModTime.UTC().Format(time.RFC3339),
		Width:    jsonInt(g.Width), Height: jsonInt(g.Height),
		Planes:   planesJSON{max(info.Planes.C, 1), max(info.Planes.Z, 1), max(info.Planes.T, 1)},
		ICCBytes: jsonInt(info.ICCBytes), Associated: []associatedJSON{}, Warnings: info.Warnings,
		URLs: map[string]string{
			"self": at, "view": prefix + "/view/" + route.EscapeID(id),
			"region": at + "/region" + v, "thumbnail": at + "/thumbnail" + v,
			"tiles": at + "/levels/{level}/tiles/{col}/{row}" + v,
		},
	}
	describeScale(out, info)
	for _, c := range info.Planes.Channels {
		out.Channels = append(out.Channels, channelJSON{c.Name, hexColor(c.Color)})
	}
	for _, a := range info.Associated {
		open := s.opensAssociated(a.Name)
		out.Associated = append(out.Associated, associatedJSON{
			Name: a.Name, Width: jsonInt(a.Width), Height: jsonInt(a.Height),
			Closed: !open, URL: at + "/associated/" + route.EscapeID(a.Name) + v,
		})
	}
	z := deepzoom.Pyramid{Width: g.Width, Height: g.Height}
	z.Tile, z.Overlap = deepzoom.Default(g)
	out.DeepZoom = deepZoomJSON{prefix + "/deepzoom/" + route.EscapeID(id) + ".dzi" + v, z.Tile, z.Overlap, z.MaxLevel()}
	return out
}

func describeScale(out *slideJSON, info *microtome.Info) {
	if m := info.MPP; m != nil {
		out.MPP = &xyJSON{jsonFloat(m.X), jsonFloat(m.Y)}
	}
	if p := info.ObjectivePower; p != nil {
		f := jsonFloat(*p)
		out.Power = &f
	}
	if b := info.Bounds; b != nil {
		out.Bounds = &boxJSON{jsonInt(b.Min.X), jsonInt(b.Min.Y), jsonInt(b.Dx()), jsonInt(b.Dy())}
	}
	out.Background = hexColor(info.Background)
	for _, l := range info.Levels {
		out.Levels = append(out.Levels, levelJSON{
			Width: jsonInt(l.Width), Height: jsonInt(l.Height), Downsample: jsonFloat(l.Downsample),
			TileWidth: l.TileWidth, TileHeight: l.TileHeight, Columns: l.Cols, Rows: l.Rows,
			Codec: codecNames[l.Codec],
		})
	}
}

func hexColor(c *microtome.RGB) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
}

// opensAssociated says whether an associated image may be shown: the thumbnail
// always, label, macro and all others (they may show a name) when configured.
func (s *server) opensAssociated(name string) bool {
	return name == "thumbnail" || s.opt.OpenAssociated
}

// associated answers /slides/{id}/associated/{name}.
func (s *server) associated(x *exchange, r *http.Request, p route.Slide) error {
	q, err := s.plainQuery(x, r)
	if err != nil {
		return err
	}
	o, err := s.open(x, r, p.ID)
	if err != nil {
		return err
	}
	defer o.handle.Release()
	known := false
	for _, a := range o.info.Associated {
		known = known || a.Name == p.Name
	}
	if !known {
		return fmt.Errorf("associated image: %w", microtome.ErrNotFound)
	}
	if !s.opensAssociated(p.Name) {
		return fmt.Errorf("associated image closed by configuration: %w", microtome.ErrForbidden)
	}
	po, err := pixelOptions(o.info, &q)
	if err != nil {
		return err
	}
	b := append(canonical(nil, 'a', &q), p.Name...)
	if s.fresh(x, r, o, b, &q) {
		return nil
	}
	a, err := s.opt.Reader.Associated(r.Context(), o.slide, p.Name, po)
	if err != nil {
		return err
	}
	return s.write(x, r, a)
}

// The sides of a thumbnail, in pixels.
const (
	defaultThumbnail = 256
	maxThumbnail     = 4096
)

// thumbnail answers /slides/{id}/thumbnail.
func (s *server) thumbnail(x *exchange, r *http.Request, id string) error {
	var q route.Pixels
	size := defaultThumbnail
	err := parsePixels(r.URL.RawQuery, &q, func(key, value string) (known bool, err error) {
		if key != "size" {
			return false, nil
		}
		size, err = route.Count(key, value, 1, maxThumbnail)
		return true, err
	})
	if err != nil {
		return err
	}
	if err := s.negotiate(x, r, &q); err != nil {
		return err
	}
	o, err := s.open(x, r, id)
	if err != nil {
		return err
	}
	defer o.handle.Release()
	po, err := pixelOptions(o.info, &q)
	if err != nil {
		return err
	}
	if s.fresh(x, r, o, appendInt(canonical(nil, 't', &q), int64(size)), &q) {
		return nil
	}
	var a tiles.Answer
	if q.Bounds && o.info.Bounds != nil {
		a, err = s.opt.Reader.Region(r.Context(), o.slide, fit(*o.info.Bounds, size), po)
	} else {
		a, err = s.opt.Reader.Thumbnail(r.Context(), o.slide, size, po)
	}
	if err != nil {
		return err
	}
	return s.write(x, r, a)
}

// fit is a part of the slide, at most size pixels on its longer side and never
// enlarged.
func fit(part image.Rectangle, size int) tiles.Region {
	down := max(float64(max(part.Dx(), part.Dy()))/float64(size), 1)
	side := func(n int) int { return max(int(math.Round(float64(n)/down)), 1) }
	return tiles.Region{L0X: int64(part.Min.X), L0Y: int64(part.Min.Y), Width: side(part.Dx()), Height: side(part.Dy()),
		Scale: tiles.Scale{Kind: tiles.ByDownsample, Value: down}}
}
