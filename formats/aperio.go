package formats

import (
	"fmt"
	"strings"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
)

// detectAperio: the first directory is tiled and its description says so.
func detectAperio(in *input) bool {
	return isTiled(in.main) && strings.HasPrefix(in.text, "Aperio")
}

// layoutAperio tells levels from associated images. OpenSlide takes every
// tiled directory for a level and names the others by place and subfile type
// alone; here a tiled label or macro is no level, and a description that names
// an image counts too (so that a label is never shown as a thumbnail).
func layoutAperio(in *input) (*layout, error) {
	main, keys := in.main, aperioKeys(in.text)
	l := &layout{format: "aperio", planes: onePlane(), inheritEmpty: true, icc: main}
	grid, err := gridOf(main)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", main.Name(), err)
	}
	levels := []*tiff.Dir{main}
	for i, d := range in.Dirs[1:] {
		g, err := gridOf(d)
		name := aperioName(i+1, d, err == nil && fits(grid, g))
		switch {
		case name == "" && isTiled(d) && err != nil:
			return nil, fmt.Errorf("%s: %w", d.Name(), err)
		case name == "" && isTiled(d) && fits(grid, g) && g.Samples == grid.Samples:
			levels = append(levels, d)
		case name == "" || err != nil:
			l.warn("%s left out: %s", d.Name(), whyNot(name, err))
		default:
			l.associate(name, d, aperioICC(main, d, keys))
		}
	}
	bySize(levels)
	for _, d := range falling(levels, l.warn) {
		l.levels = append(l.levels, []picture{{dir: d}})
	}
	if x, ok := positive(keys["MPP"]); ok {
		l.mpp = &microtome.MPP{X: x, Y: x}
	}
	if x, ok := positive(keys["AppMag"]); ok {
		l.power = &x
	}
	l.reported = reportAperio(in.File, keys)
	return l, nil
}

func whyNot(name string, err error) string {
	if err != nil {
		return err.Error()
	}
	return "neither a level nor a named image"
}

// aperioName names an associated image, "" for a level or what is unknown.
// shaped says that the directory has the shape of level 0.
func aperioName(i int, d *tiff.Dir, shaped bool) string {
	kind := subfile(d)
	if name := aperioKind(description(d)); name != "" {
		return name
	}
	switch {
	case kind == subfileMacro:
		return nameMacro
	case isTiled(d) && shaped:
		return ""
	case isTiled(d) && kind == subfileReduced:
		return nameLabel
	case isTiled(d):
		return ""
	case i == 1 && (kind != subfileReduced || shaped):
		return nameThumbnail
	case kind == subfileReduced:
		return nameLabel
	}
	return ""
}

// aperioICC is the directory whose profile holds for an associated image: its
// own, or the slide's when both descriptions name the same profile.
func aperioICC(main, d *tiff.Dir, keys map[string]string) *tiff.Dir {
	if d.Count(tiff.ICCProfile) > 0 {
		return d
	}
	if name := keys[aperioProfile]; name != "" && aperioKeys(description(d))[aperioProfile] == name {
		return main
	}
	return nil
}

// aperioProfile is the key that names a profile.
const aperioProfile = "ICC Profile"

// reportAperio is what OpenSlide makes of the file: it takes tiled directories
// in file order and refuses a file where they grow.
func reportAperio(f *tiff.File, keys map[string]string) report {
	r := report{vendor: "aperio", main: f.Dirs[0], aperio: true}
	for i, d := range f.Dirs {
		switch {
		case isTiled(d):
			r.levels = append(r.levels, d)
		case i == 1:
			r.associate(nameThumbnail, d, keys)
		case subfile(d) == subfileReduced:
			r.associate(nameLabel, d, keys)
		case subfile(d) == subfileMacro:
			r.associate(nameMacro, d, keys)
		}
	}
	if !orderly(r.levels) {
		return report{}
	}
	return r
}
