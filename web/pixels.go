package web

import (
	"fmt"
	"image"
	"net/http"
	"slices"
	"strconv"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/tiles"
	"github.com/microtome/microtome/web/route"
)

// madeNames are the ways an answer is made, as Microtome-Tile and the metrics
// say it, in the order of tiles.Made.
var madeNames = [...]string{"stored", "cropped", "rendered", "empty"}

// engineNames are the engines of Microtome-Tile.
var engineNames = [...]string{"none", "cpu", "gpu"}

// madeHeaders are all values of Microtome-Tile, by made, engine and cache.
var madeHeaders = func() (all [len(madeNames)][len(engineNames)][2][]string) {
	for m, made := range madeNames {
		for e, engine := range engineNames {
			for c, cache := range [...]string{"miss", "hit"} {
				all[m][e][c] = []string{made + "; engine=" + engine + "; cache=" + cache}
			}
		}
	}
	return all
}()

// engineOf is where in engineNames an answer's engine stands.
func engineOf(name string) int { return max(0, slices.Index(engineNames[:], name)) }

// cacheOf is 1 for a hit.
func cacheOf(hit bool) int {
	if hit {
		return 1
	}
	return 0
}

// contentTypes are by microtome.Format.
var contentTypes = [...][]string{
	microtome.FormatJPEG: {"image/jpeg"},
	microtome.FormatPNG:  {"image/png"},
	microtome.FormatWebP: {"image/webp"},
	microtome.FormatRaw:  {"application/octet-stream"},
	microtome.FormatNPY:  {"application/x-npy"},
}

// formatOf maps the grammar's name of a format, "" being JPEG.
func formatOf(name string) microtome.Format {
	switch name {
	case "png":
		return microtome.FormatPNG
	case "webp":
		return microtome.FormatWebP
	case "raw":
		return microtome.FormatRaw
	case "npy":
		return microtome.FormatNPY
	}
	return microtome.FormatJPEG
}

// opened is a slide in use by one request.
type opened struct {
	handle *library.Handle
	slide  microtome.Slide
	info   *microtome.Info
	tag    string
}

// open acquires a slide with its tag. The caller releases the handle.
func (s *server) open(x *exchange, r *http.Request, id string) (opened, error) {
	x.slideID = id
	h, err := s.opt.Library.Acquire(r.Context(), id)
	if err != nil {
		return opened{}, err
	}
	o := opened{handle: h, slide: h.Slide()}
	o.info = o.slide.Info()
	if o.tag, err = s.states.tag(r.Context(), id, o.slide); err != nil {
		h.Release()
		return opened{}, err
	}
	return o, nil
}

// fresh sets the cache headers of an answer whose canonical form is given, and
// says whether the client has it already (then 304 is written).
func (s *server) fresh(x *exchange, r *http.Request, o opened, canonical []byte, p *route.Pixels) bool {
	etag := entityTag(o.tag, canonical)
	h := x.Header()
	x.set("Etag", etag)
	h["Cache-Control"] = s.control[0]
	if p.VersionSeen && p.Version == o.info.Generation.ID {
		h["Cache-Control"] = s.control[1]
	}
	if !matches(r, etag) {
		return false
	}
	x.WriteHeader(http.StatusNotModified)
	return true
}

// canonical starts the canonical form of a query: the kind of answer, then the
// parameters that change its pixels, each in one spelling.
func canonical(b []byte, kind byte, p *route.Pixels) []byte {
	b = append(b, kind, byte(formatOf(p.Format)), byte(p.Quality))
	for _, n := range [...]int{p.C, p.Z, p.T} {
		b = appendInt(b, int64(n))
	}
	if c := p.Background; c != nil {
		b = append(b, 'b', c.R, c.G, c.B)
	}
	if p.EmbedICC {
		b = append(b, 'i')
	}
	if p.Bounds {
		b = append(b, 'o')
	}
	return append(b, ';')
}

func appendInt(b []byte, n int64) []byte {
	return append(strconv.AppendInt(b, n, 10), ',')
}

// pixelOptions checks the plane against the slide and maps the rest.
func pixelOptions(info *microtome.Info, p *route.Pixels) (tiles.PixelOptions, error) {
	o := tiles.PixelOptions{
		C: p.C, Z: p.Z, T: p.T, Format: formatOf(p.Format), Quality: p.Quality,
		Background: p.Background, Priority: microtome.PriorityViewer,
	}
	if p.EmbedICC {
		o.ICC = "embed"
	}
	n := info.Planes
	if p.C >= max(n.C, 1) || p.Z >= max(n.Z, 1) || p.T >= max(n.T, 1) {
		return o, fmt.Errorf("plane c=%d z=%d t=%d: %w", p.C, p.Z, p.T, microtome.ErrNotFound)
	}
	return o, nil
}

// write sends a pixel answer.
func (s *server) write(x *exchange, r *http.Request, a tiles.Answer) error {
	h := x.Header()
	h["Content-Type"] = contentTypes[a.Format]
	made, hit := int(a.Made), cacheOf(a.CacheHit)
	h["Microtome-Tile"] = madeHeaders[made][engineOf(a.Engine)][hit]
	x.made = int8(2*made + hit + 1)
	if a.Preview {
		// The final picture will have the same address.
		h["Cache-Control"] = headerNoStore
		delete(h, "Etag")
	}
	if a.Format == microtome.FormatRaw {
		x.set("Microtome-Shape", strconv.Itoa(a.Height)+","+strconv.Itoa(a.Width)+","+strconv.Itoa(a.Channels))
	}
	return x.body(r, http.StatusOK, a.Body)
}

// scaleHeader says what scale an answer has.
func scaleHeader(a tiles.Answer) string {
	b := make([]byte, 0, 80)
	b = append(b, "level="...)
	b = strconv.AppendInt(b, int64(a.Level), 10)
	b = append(b, "; downsample="...)
	b = strconv.AppendFloat(b, a.Downsample, 'g', -1, 64)
	if a.MPP != nil {
		b = append(b, "; mpp-x="...)
		b = strconv.AppendFloat(b, a.MPP.X, 'g', -1, 64)
		b = append(b, "; mpp-y="...)
		b = strconv.AppendFloat(b, a.MPP.Y, 'g', -1, 64)
	}
	return string(b)
}

// errOrigin refuses origin=bounds where nothing is counted from an origin.
var errOrigin = fmt.Errorf("origin=bounds has no meaning here: %w", microtome.ErrMalformed)

// region answers /slides/{id}/region.
func (s *server) region(x *exchange, r *http.Request, id string) error {
	q, err := route.ParseRegion(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if err := s.negotiate(x, r, &q.Pixels); err != nil {
		return err
	}
	if int64(q.Width)*int64(q.Height) > s.opt.MaxPixels {
		return fmt.Errorf("%d x %d pixels, of at most %d: %w", q.Width, q.Height, s.opt.MaxPixels, microtome.ErrLimit)
	}
	o, err := s.open(x, r, id)
	if err != nil {
		return err
	}
	defer o.handle.Release()
	want := tiles.Region{L0X: q.L0X, L0Y: q.L0Y, Width: q.Width, Height: q.Height,
		Scale: tiles.Scale{Kind: scaleKinds[q.Scale], Value: q.Value, Tolerance: q.Pixels.Tolerance}}
	if q.Scale == route.ScaleLevel && int(q.Value) >= len(o.info.Levels) {
		return fmt.Errorf("level %d: %w", int(q.Value), microtome.ErrNotFound)
	}
	at := frame(o.info, q.Pixels.Bounds).Min
	want.L0X, want.L0Y = want.L0X+int64(at.X), want.L0Y+int64(at.Y)
	po, err := pixelOptions(o.info, &q.Pixels)
	if err != nil {
		return err
	}
	if po.Format == microtome.FormatRaw || po.Format == microtome.FormatNPY {
		po.Priority = microtome.PrioritySampler // no browser shows these
	}
	var buf [160]byte
	b := canonical(buf[:0], 'r', &q.Pixels)
	for _, n := range [...]int64{q.L0X, q.L0Y, int64(q.Width), int64(q.Height), int64(q.Scale)} {
		b = appendInt(b, n)
	}
	b = strconv.AppendFloat(b, q.Value, 'g', -1, 64)
	b = append(b, ',')
	b = strconv.AppendFloat(b, q.Pixels.Tolerance, 'g', -1, 64)
	if s.fresh(x, r, o, b, &q.Pixels) {
		return nil
	}
	a, err := s.opt.Reader.Region(r.Context(), o.slide, want, po)
	if err != nil {
		return err
	}
	x.set("Microtome-Scale", scaleHeader(a))
	return s.write(x, r, a)
}

var scaleKinds = [...]tiles.ScaleKind{
	route.ScaleLevel: tiles.ByLevel, route.ScaleMPP: tiles.ByMPP,
	route.ScaleMagnification: tiles.ByMagnification, route.ScaleDownsample: tiles.ByDownsample,
}

// frame is the part of level 0 that origin= counts in: the whole slide, or its
// bounds when it states some.
func frame(info *microtome.Info, bounds bool) image.Rectangle {
	if bounds && info.Bounds != nil {
		return *info.Bounds
	}
	return image.Rect(0, 0, int(info.Levels[0].Width), int(info.Levels[0].Height))
}

// negotiate fills in the format from Accept when the query names none.
func (s *server) negotiate(x *exchange, r *http.Request, p *route.Pixels) error {
	if p.Format != "" {
		return nil
	}
	x.addVary(headerAccept)
	var accept string
	switch lines := r.Header["Accept"]; len(lines) {
	case 0:
	case 1:
		accept = lines[0]
	default:
		for i, l := range lines {
			if i > 0 {
				accept += ","
			}
			accept += l
		}
	}
	var err error
	p.Format, err = route.FormatOf(accept)
	return err
}

// parsePixels reads the parameters of a route that takes no others than these
// and those that extra knows. Others are refused.
func parsePixels(raw string, p *route.Pixels, extra func(key, value string) (bool, error)) error {
	var seen route.Once
	return route.EachParam(raw, func(key, value string) error {
		if err := seen.See(key); err != nil {
			return err
		}
		known, err := p.Set(key, value)
		if !known && err == nil && extra != nil {
			known, err = extra(key, value)
		}
		if !known && err == nil {
			err = route.ErrUnknown(key)
		}
		return err
	})
}

// plainQuery reads the query of a route whose pixels have no origin.
func (s *server) plainQuery(x *exchange, r *http.Request) (q route.Pixels, err error) {
	if err = parsePixels(r.URL.RawQuery, &q, nil); err != nil {
		return q, err
	}
	if q.Bounds {
		return q, errOrigin
	}
	return q, s.negotiate(x, r, &q)
}

// storedTile answers /slides/{id}/levels/{level}/tiles/{col}/{row}: the stored
// bytes, or its pixels in the format asked for.
func (s *server) storedTile(x *exchange, r *http.Request, p route.Slide) error {
	q, err := s.plainQuery(x, r)
	if err != nil {
		return err
	}
	o, err := s.open(x, r, p.ID)
	if err != nil {
		return err
	}
	defer o.handle.Release()
	if p.Level >= len(o.info.Levels) {
		return fmt.Errorf("level %d: %w", p.Level, microtome.ErrNotFound)
	}
	if g := o.info.Levels[p.Level]; p.Col >= g.Cols || p.Row >= g.Rows {
		return fmt.Errorf("level %d: tile %d,%d: %w", p.Level, p.Col, p.Row, microtome.ErrNotFound)
	}
	po, err := pixelOptions(o.info, &q)
	if err != nil {
		return err
	}
	stored := q == route.Pixels{C: q.C, Z: q.Z, T: q.T, Tolerance: q.Tolerance, Version: q.Version, VersionSeen: q.VersionSeen}
	kind := byte('p')
	if stored {
		kind = 's'
	}
	var buf [96]byte
	b := canonical(buf[:0], kind, &q)
	for _, n := range [...]int{p.Level, p.Col, p.Row} {
		b = appendInt(b, int64(n))
	}
	if s.fresh(x, r, o, b, &q) {
		return nil
	}
	plane := o.info.Planes.Index(q.C, q.Z, q.T)
	var a tiles.Answer
	if stored {
		a, err = s.opt.Reader.Stored(r.Context(), o.slide, p.Level, plane, p.Col, p.Row)
	} else {
		a, err = s.opt.Reader.StoredPixels(r.Context(), o.slide, p.Level, plane, p.Col, p.Row, po)
	}
	if err != nil {
		return err
	}
	return s.write(x, r, a)
}
