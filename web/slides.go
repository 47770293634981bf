package web

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/library"
	"github.com/microtome/microtome/web/route"
)

// jsonInt is an integer that JavaScript can hold: above 2^53 it is a string.
type jsonInt int64

// MarshalJSON implements json.Marshaler.
func (n jsonInt) MarshalJSON() ([]byte, error) {
	s := strconv.FormatInt(int64(n), 10)
	if n > 1<<53 || n < -(1<<53) {
		s = `"` + s + `"`
	}
	return []byte(s), nil
}

// jsonFloat is a number, or null where JSON has none.
type jsonFloat float64

// MarshalJSON implements json.Marshaler.
func (f jsonFloat) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(f), 'g', -1, 64), nil
}

type listJSON struct {
	Folder   string       `json:"folder"`
	Folders  []folderJSON `json:"folders"`
	Slides   []entryJSON  `json:"slides"`
	Total    int          `json:"total"`
	Offset   int          `json:"offset"`
	Limit    int          `json:"limit"`
	Scanning bool         `json:"scanning"`
}

type folderJSON struct {
	Path string `json:"path"`
	Name string `json:"name"`
	URL  string `json:"url"`
}

type entryJSON struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Bytes     jsonInt `json:"bytes"`
	Modified  string  `json:"modified"`
	Checked   bool    `json:"checked"`
	Error     string  `json:"error,omitempty"`
	URL       string  `json:"url"`
	View      string  `json:"view"`
	Thumbnail string  `json:"thumbnail"`
}

// Bounds of limit=.
const (
	defaultPage = 100
	maxPage     = 1000
)

// list answers /slides.
func (s *server) list(x *exchange, r *http.Request) error {
	x.route = routeSlides
	q, err := parseList(r.URL.RawQuery)
	if err != nil {
		return err
	}
	page, err := s.opt.Library.List(r.Context(), q)
	if err != nil {
		return err
	}
	out := listJSON{
		Folder: q.Folder, Folders: make([]folderJSON, 0, len(page.Folders)),
		Slides: make([]entryJSON, 0, len(page.Entries)),
		Total:  page.Total, Offset: q.Offset, Limit: q.Limit, Scanning: page.Scanning,
	}
	for _, f := range page.Folders {
		out.Folders = append(out.Folders, folderJSON{f, path.Base(f), x.prefix + "/slides?folder=" + route.EscapeID(f)})
	}
	for _, e := range page.Entries {
		out.Slides = append(out.Slides, listEntry(x.prefix, e))
	}
	return s.writeDocument(x, r, out)
}

func listEntry(prefix string, e library.Entry) entryJSON {
	id := route.EscapeID(e.ID)
	if e.Err != "" && namesFile(errors.New(e.Err), e.ID) {
		e.Err = "cannot be read"
	}
	return entryJSON{
		ID: e.ID, Name: e.Name, Bytes: jsonInt(e.Size), Modified: e.ModTime.UTC().Format(time.RFC3339),
		Checked: e.Checked, Error: e.Err,
		URL: prefix + "/slides/" + id, View: prefix + "/view/" + id,
		Thumbnail: prefix + "/slides/" + id + "/thumbnail",
	}
}

func parseList(raw string) (library.Query, error) {
	q := library.Query{Limit: defaultPage}
	var seen route.Once
	err := route.EachParam(raw, func(key, value string) (err error) {
		if err := seen.See(key); err != nil {
			return err
		}
		switch key {
		case "folder":
			q.Folder = value
		case "search":
			q.Search = value
		case "offset":
			q.Offset, err = route.Count(key, value, 0, math.MaxInt32)
		case "limit":
			q.Limit, err = route.Count(key, value, 1, maxPage)
		case "recursive":
			switch value {
			case "", "1", "true":
				q.Recursive = true
			case "0", "false":
			default:
				err = fmt.Errorf("recursive is not true or false: %w", microtome.ErrMalformed)
			}
		case "v", "token":
		default:
			err = route.ErrUnknown(key)
		}
		return err
	})
	return q, err
}

// writeDocument writes JSON under an ETag of its own bytes.
func (s *server) writeDocument(x *exchange, r *http.Request, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	x.Header()["Content-Type"] = headerJSON
	return s.writeTagged(x, r, b.Bytes())
}

// writeTagged writes a body that is made anew each time, under its own ETag.
func (s *server) writeTagged(x *exchange, r *http.Request, body []byte) error {
	h := fnv.New128a()
	h.Write(body)
	etag := `"` + hex.EncodeToString(h.Sum(nil)) + `"`
	x.set("Etag", etag)
	x.Header()["Cache-Control"] = s.control[0]
	if matches(r, etag) {
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	return x.body(r, http.StatusOK, body)
}

// slide answers what lies below /slides/.
func (s *server) slide(x *exchange, r *http.Request) error {
	x.route = routeSlide
	rest, err := s.below(r, "/slides/")
	if err != nil {
		return err
	}
	p, err := route.ParseSlide(rest)
	x.route = partRoutes[p.Part]
	if err != nil {
		return err
	}
	switch p.Part {
	case route.PartTile:
		return s.storedTile(x, r, p)
	case route.PartRegion:
		return s.region(x, r, p.ID)
	case route.PartThumbnail:
		return s.thumbnail(x, r, p.ID)
	case route.PartAssociated:
		return s.associated(x, r, p)
	}
	return s.slideInfo(x, r, p.ID)
}

var partRoutes = [...]routeID{
	route.PartInfo: routeSlide, route.PartTile: routeTile, route.PartRegion: routeRegion,
	route.PartThumbnail: routeThumbnail, route.PartAssociated: routeAssociated,
}

type slideJSON struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Format     string            `json:"format"`
	Generation string            `json:"generation"`
	Bytes      jsonInt           `json:"bytes"`
	Modified   string            `json:"modified"`
	Width      jsonInt           `json:"width"`
	Height     jsonInt           `json:"height"`
	MPP        *xyJSON           `json:"mpp"`
	Power      *jsonFloat        `json:"objective_power"`
	Levels     []levelJSON       `json:"levels"`
	Planes     planesJSON        `json:"planes"`
	Channels   []channelJSON     `json:"channels,omitempty"`
	Bounds     *boxJSON          `json:"bounds"`
	Background string            `json:"background,omitempty"`
	ICCBytes   jsonInt           `json:"icc_bytes"`
	Associated []associatedJSON  `json:"associated"`
	Properties map[string]string `json:"properties"`
	Hidden     int               `json:"properties_hidden"`
	Warnings   []string          `json:"warnings,omitempty"`
	DeepZoom   deepZoomJSON      `json:"deepzoom"`
	Building   *buildingJSON     `json:"building,omitempty"`
	URLs       map[string]string `json:"urls"`
}

type xyJSON struct {
	X jsonFloat `json:"x"`
	Y jsonFloat `json:"y"`
}

type boxJSON struct {
	X      jsonInt `json:"x"`
	Y      jsonInt `json:"y"`
	Width  jsonInt `json:"width"`
	Height jsonInt `json:"height"`
}

type levelJSON struct {
	Width      jsonInt   `json:"width"`
	Height     jsonInt   `json:"height"`
	Downsample jsonFloat `json:"downsample"`
	TileWidth  int       `json:"tile_width"`
	TileHeight int       `json:"tile_height"`
	Columns    int       `json:"columns"`
	Rows       int       `json:"rows"`
	Codec      string    `json:"codec"`
}

type planesJSON struct {
	C int `json:"c"`
	Z int `json:"z"`
	T int `json:"t"`
}

type channelJSON struct {
	Name  string `json:"name"`
	Color string `json:"color,omitempty"`
}

type associatedJSON struct {
	Name   string  `json:"name"`
	Width  jsonInt `json:"width"`
	Height jsonInt `json:"height"`
	Closed bool    `json:"closed"`
	URL    string  `json:"url"`
}

type deepZoomJSON struct {
	URL      string `json:"url"`
	Tile     int    `json:"tile"`
	Overlap  int    `json:"overlap"`
	MaxLevel int    `json:"max_level"`
}

type buildingJSON struct {
	Done  jsonInt `json:"done"`
	Total jsonInt `json:"total"`
}
