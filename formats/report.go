package formats

import (
	"fmt"
	"image"
	"strconv"

	"github.com/microtome/microtome/formats/tiff"
)

// report is what OpenSlide would make of a file, where that differs from what
// is served: its levels (masks too, only flagged ones), its associated images.
// A file that OpenSlide refuses has no levels here, and is then reported as it
// is served.
type report struct {
	vendor     string
	main       *tiff.Dir // holds the tiff.* properties
	levels     []*tiff.Dir
	associated []reportedImage
	aperio     bool
	ours       bool // OpenSlide refuses the file: no quickhash either
}

type reportedImage struct {
	name string
	dir  *tiff.Dir
	icc  bool // carries the slide's profile
}

// associate adds an image; of equal names the last wins.
func (r *report) associate(name string, d *tiff.Dir, keys map[string]string) {
	image := reportedImage{name: name, dir: d}
	if name == nameThumbnail && keys[aperioProfile] != "" {
		image.icc = aperioKeys(description(d))[aperioProfile] == keys[aperioProfile]
	}
	for i := range r.associated {
		if r.associated[i].name == name {
			r.associated[i] = image
			return
		}
	}
	r.associated = append(r.associated, image)
}

// orderly says that no level is larger than the one before it, by the
// downsample that OpenSlide computes.
func orderly(levels []*tiff.Dir) bool {
	last := 0.0
	for _, d := range levels {
		w0, h0 := sizeOf(levels[0])
		w, h := sizeOf(d)
		if w == 0 || h == 0 {
			return false
		}
		ds := downsample(w0, h0, w, h)
		if ds < last {
			return false
		}
		last = ds
	}
	return true
}

// properties lists every property that OpenSlide 4.0.1 reports, but for the
// quickhash. bounds is storedBox of the largest level, nil for Aperio.
func (r *report) properties(bounds *image.Rectangle) map[string]string {
	p := map[string]string{"openslide.vendor": r.vendor}
	r.addLevels(p)
	for _, a := range r.associated {
		w, h := sizeOf(a.dir)
		key := "openslide.associated." + a.name
		p[key+".width"], p[key+".height"] = decimal(w), decimal(h)
		if size := r.main.Count(tiff.ICCProfile); a.icc && size > 0 {
			p[key+".icc-size"] = decimal(size)
		}
	}
	if size := r.levels[0].Count(tiff.ICCProfile); size > 0 {
		p["openslide.icc-size"] = decimal(size)
	}
	if bounds != nil {
		p["openslide.bounds-x"], p["openslide.bounds-y"] = strconv.Itoa(bounds.Min.X), strconv.Itoa(bounds.Min.Y)
		p["openslide.bounds-width"], p["openslide.bounds-height"] = strconv.Itoa(bounds.Dx()), strconv.Itoa(bounds.Dy())
	}
	r.addTIFF(p)
	if text, ok := p["tiff.ImageDescription"]; ok {
		p["openslide.comment"] = text
	}
	if r.aperio {
		addAperio(p, r.main)
	} else if x, y, ok := resolutionMicrons(r.main); ok {
		p["openslide.mpp-x"], p["openslide.mpp-y"] = formatDouble(x), formatDouble(y)
	}
	return p
}

func (r *report) addLevels(p map[string]string) {
	p["openslide.level-count"] = strconv.Itoa(len(r.levels))
	w0, h0 := sizeOf(r.levels[0])
	for i, d := range r.levels {
		w, h := sizeOf(d)
		key := fmt.Sprintf("openslide.level[%d]", i)
		p[key+".width"], p[key+".height"] = decimal(w), decimal(h)
		p[key+".downsample"] = formatDouble(downsample(w0, h0, w, h))
		if tw, th := tileSizeOf(d); tw > 0 && th > 0 {
			p[key+".tile-width"], p[key+".tile-height"] = decimal(tw), decimal(th)
		}
	}
}

// textTags are the tags that become tiff.* properties as they are, in the
// order in which the quickhash takes them.
func textTags() []textTag {
	return []textTag{
		{"tiff.ImageDescription", tiff.ImageDescription},
		{"tiff.Make", tiff.Make},
		{"tiff.Model", tiff.Model},
		{"tiff.Software", tiff.Software},
		{"tiff.DateTime", tiff.DateTime},
		{"tiff.Artist", tiff.Artist},
		{"tiff.HostComputer", tiff.HostComputer},
		{"tiff.Copyright", tiff.Copyright},
		{"tiff.DocumentName", tiff.DocumentName},
	}
}

type textTag struct {
	key string
	tag uint16
}

// addTIFF adds the tiff.* properties of the main directory.
func (r *report) addTIFF(p map[string]string) {
	for _, t := range textTags() {
		if text, ok := textValue(r.main, t.tag); ok {
			p[t.key] = text
		}
	}
	for key, tag := range map[string]uint16{
		"tiff.XResolution": tiff.XResolution,
		"tiff.YResolution": tiff.YResolution,
		"tiff.XPosition":   tiff.XPosition,
		"tiff.YPosition":   tiff.YPosition,
	} {
		if x, ok := realValue(r.main, tag); ok {
			p[key] = formatDouble(x)
		}
	}
	p["tiff.ResolutionUnit"] = map[uint64]string{
		unitNone: "none", unitInch: "inch", unitCentimeter: "centimeter",
	}[resolutionUnit(r.main)]
	if p["tiff.ResolutionUnit"] == "" {
		p["tiff.ResolutionUnit"] = "unknown"
	}
}

// addAperio adds the description's keys, and mpp and objective power where
// they are numbers.
func addAperio(p map[string]string, main *tiff.Dir) {
	keys := aperioKeys(description(main))
	for key, value := range keys {
		p["aperio."+key] = value
	}
	if x, ok := parseDouble(keys["MPP"]); ok {
		p["openslide.mpp-x"], p["openslide.mpp-y"] = formatDouble(x), formatDouble(x)
	}
	if x, ok := parseDouble(keys["AppMag"]); ok {
		p["openslide.objective-power"] = formatDouble(x)
	}
}

func decimal[T int | int64 | uint64](n T) string { return fmt.Sprintf("%d", n) }
