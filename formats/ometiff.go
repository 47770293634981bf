package formats

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
	"github.com/microtome/microtome/formats/tiff/jpegstream"
)

const formatOME = "ome-tiff"

// detectOME: the first directory's description claims to be OME-XML.
func detectOME(in *input) bool { return looksLikeOME(in.text) }

// omeLayout builds the layout of an OME-TIFF: one Image, the first.
type omeLayout struct {
	*layout
	file   *tiff.File
	doc    *omeDoc
	planes omePlanes
}

// layoutOME maps the first Image's planes to directories and their reductions
// to levels. Other Images are offered when their names say label, macro or
// thumbnail; directories that no TiffData names are not shown.
func layoutOME(in *input) (*layout, error) {
	if n := int64(len(in.text)); n > in.limits.XMLBytes {
		return nil, fmt.Errorf("OME-XML: %d bytes, at most %d: %w", n, in.limits.XMLBytes, microtome.ErrLimit)
	}
	doc, err := parseOME(in.text)
	if errors.Is(err, microtome.ErrCorrupt) {
		return layoutBroken(in, err)
	}
	if err != nil {
		return nil, err
	}
	if len(doc.Images) == 0 || !doc.Images[0].Pixels.Present {
		return nil, noPixels(doc)
	}
	o := &omeLayout{layout: &layout{format: formatOME}, file: in.File, doc: doc}
	if err := o.mapPlanes(in.limits.Planes); err != nil {
		return nil, err
	}
	o.addLevels()
	o.describe()
	o.addOthers()
	o.reported = reportGeneric(in.File)
	return o.layout, nil
}

// layoutBroken shows a file whose OME-XML can't be read as the plain TIFF that
// it is to OpenSlide.
func layoutBroken(in *input, why error) (*layout, error) {
	l, err := layoutGeneric(in)
	if err == nil {
		l.warn("%v: shown as a plain TIFF", why)
	}
	return l, err
}

func noPixels(doc *omeDoc) error {
	if doc.BinaryOnly != "" {
		// Without the file's name: reasons are shown and logged, and names of
		// files may be names of patients.
		return &microtome.Unsupported{Tag: "OME-XML BinaryOnly", Value: "MetadataFile (metadata in another file)"}
	}
	return fmt.Errorf("OME-XML: the first Image has no Pixels: %w", microtome.ErrCorrupt)
}

// mapPlanes finds each plane's directory. The directory decides how many
// samples a plane has: SamplesPerPixel is often missing from the XML.
func (o *omeLayout) mapPlanes(limit int) error {
	pixels := &o.doc.Images[0].Pixels
	first := o.file.Dirs[0]
	for _, b := range pixels.Blocks {
		if b.IFD > 0 && b.IFD < len(o.file.Dirs) && b.FirstC == 0 && b.FirstZ == 0 && b.FirstT == 0 {
			first = o.file.Dirs[b.IFD]
			break
		}
	}
	if _, err := planeGridOf(first); err != nil {
		return fmt.Errorf("%s: %w", first.Name(), err)
	}
	m, err := planesOf(pixels, o.doc.UUID, samplesOf(first), len(o.file.Dirs), o.step, limit)
	if err != nil {
		return err
	}
	o.planes = m
	if m.IFD[0] < 0 {
		return fmt.Errorf("OME-XML: no TiffData holds the first plane: %w", microtome.ErrCorrupt)
	}
	return nil
}

// step is the directory after i that can be a plane.
func (o *omeLayout) step(i int) int {
	for i++; i < len(o.file.Dirs); i++ {
		if subfile(o.file.Dirs[i])&(subfileReduced|subfileMask) == 0 {
			return i
		}
	}
	return i
}

// addLevels builds the levels of every plane: its SubIFDs, or the chain's
// reduced-resolution directories, one of each size for each plane in order.
func (o *omeLayout) addLevels() {
	zero := make([]picture, len(o.planes.IFD))
	for i, ifd := range o.planes.IFD {
		if ifd >= 0 {
			zero[i].dir = o.file.Dirs[ifd]
		}
	}
	base := zero[0].dir
	o.levels = [][]picture{zero}
	for _, d := range smaller(base, base.SubDirs, o.warn) {
		o.levels = append(o.levels, o.subLevel(zero, d))
	}
	if len(base.SubDirs) == 0 {
		o.chainLevels(zero)
	}
	if isPlanar(base) {
		o.splitSamples()
	}
}

// smaller lists the reductions of base among the candidates.
func smaller(base *tiff.Dir, candidates []*tiff.Dir, warn func(string, ...any)) []*tiff.Dir {
	levels := pyramid(base, candidates, planeGridOf, warn)
	return levels[slices.Index(levels, base)+1:]
}

// subLevel collects, for every plane, the SubIFD that is as large as like.
func (o *omeLayout) subLevel(zero []picture, like *tiff.Dir) []picture {
	w, h := sizeOf(like)
	level := make([]picture, len(zero))
	for i, p := range zero {
		if p.dir == nil {
			continue
		}
		for _, d := range p.dir.SubDirs {
			if dw, dh := sizeOf(d); dw == w && dh == h {
				level[i].dir = d
				break
			}
		}
	}
	return level
}

// chainLevels takes reduced-resolution directories of the main chain: those of
// one size are a level when there are as many as full planes.
func (o *omeLayout) chainLevels(zero []picture) {
	var reduced []*tiff.Dir
	for _, d := range o.file.Dirs {
		if kind := subfile(d); kind&subfileReduced != 0 && kind&subfileMask == 0 {
			reduced = append(reduced, d)
		}
	}
	full := o.fullPlanes()
	for _, like := range smaller(zero[0].dir, reduced, func(string, ...any) {}) {
		w, h := sizeOf(like)
		var same []*tiff.Dir
		for _, d := range reduced {
			if dw, dh := sizeOf(d); dw == w && dh == h {
				same = append(same, d)
			}
		}
		if len(same) != len(full) {
			o.warn("%d reduced images of %dx%d beside %d planes: left out", len(same), w, h, len(full))
			continue
		}
		level := make([]picture, len(zero))
		for i, ifd := range o.planes.IFD {
			if ifd >= 0 {
				level[i].dir = same[full[ifd]]
			}
		}
		o.levels = append(o.levels, level)
	}
}

// fullPlanes ranks the directories that hold planes, in chain order.
func (o *omeLayout) fullPlanes() map[int]int {
	used := make([]bool, len(o.file.Dirs))
	for _, ifd := range o.planes.IFD {
		if ifd >= 0 {
			used[ifd] = true
		}
	}
	rank := map[int]int{}
	for i, ok := range used {
		if ok {
			rank[i] = len(rank)
		}
	}
	return rank
}

// splitSamples makes every sample of separately stored planes a channel.
func (o *omeLayout) splitSamples() {
	n := samplesOf(o.levels[0][0].dir)
	for k, planes := range o.levels {
		split := make([]picture, 0, len(planes)*n)
		for _, p := range planes {
			for s := range n {
				split = append(split, picture{dir: p.dir, sample: s})
			}
		}
		o.levels[k] = split
	}
	o.planes.C *= n
}

// describe fills in what the XML says of the slide.
func (o *omeLayout) describe() {
	image := &o.doc.Images[0]
	o.layout.planes = o.planes.Planes
	if n := o.planes.C; len(image.Pixels.Channels) >= n && n > 1 {
		for _, c := range image.Pixels.Channels[:n] {
			o.layout.planes.Channels = append(o.layout.planes.Channels, microtome.Channel{Name: c.Name, Color: c.Color})
		}
	}
	base := o.levels[0][0].dir
	o.icc = base
	x, okX := microns(image.Pixels.PhysicalX, image.Pixels.UnitX)
	y, okY := microns(image.Pixels.PhysicalY, image.Pixels.UnitY)
	if okX && okY {
		o.mpp = &microtome.MPP{X: x, Y: y}
	} else {
		o.mpp = resolutionMPP(base)
	}
	if x, ok := o.doc.Powers[image.Objective]; ok {
		o.power = &x
	}
	if w, h := sizeOf(base); w != image.Pixels.SizeX || h != image.Pixels.SizeY {
		o.warn("OME-XML says %dx%d, %s is %dx%d: the directory counts",
			image.Pixels.SizeX, image.Pixels.SizeY, base.Name(), w, h)
	}
	if missing := o.missing(); missing > 0 {
		o.warn("%d of %d planes are in no directory", missing, len(o.planes.IFD))
	}
}

func (o *omeLayout) missing() (n int) {
	for _, ifd := range o.planes.IFD {
		if ifd < 0 {
			n++
		}
	}
	return n
}

// addOthers offers further Images that are named for what is beside a slide.
func (o *omeLayout) addOthers() {
	left := 0
	for i := range o.doc.Images[1:] {
		image := &o.doc.Images[i+1]
		name := otherName(image.Name)
		d := o.firstDir(image)
		if name == "" || d == nil {
			left++
			continue
		}
		if _, err := gridOf(d); err != nil {
			o.warn("%s: %s left out: %v", d.Name(), name, err)
			continue
		}
		o.associate(name, d, d)
	}
	if left > 0 {
		o.warn("OME-XML has %d more images: only the first is shown", left)
	}
}

func otherName(name string) string {
	name = strings.ToLower(name)
	for _, known := range []string{nameLabel, nameMacro, nameThumbnail} {
		if strings.Contains(name, known) {
			return known
		}
	}
	return ""
}

// firstDir is the directory of an image's first plane when it is in this file.
func (o *omeLayout) firstDir(image *omeImage) *tiff.Dir {
	for _, b := range image.Pixels.Blocks {
		if b.IFD >= 0 && b.IFD < len(o.file.Dirs) && !elsewhere(b, o.doc.UUID, image.Pixels.Blocks) {
			return o.file.Dirs[b.IFD]
		}
	}
	return nil
}

// subsampledIsYCbCr takes a JPEG tile that is marked RGB for what it is: a
// stream that stores two of its components smaller holds YCbCr. OME-TIFFs exist
// whose PhotometricInterpretation says RGB over such streams, as their writer
// handed them out decoded.
func subsampledIsYCbCr(t *microtome.Tile) error {
	h, err := jpegstream.Parse(t.Data)
	if err != nil {
		return err
	}
	y, cb, cr := h.Components[0], h.Components[1], h.Components[2]
	if h.NumComponents != 3 || y.H*y.V <= cb.H*cb.V || cb.H != cr.H || cb.V != cr.V {
		return nil
	}
	if t.Data, err = jpegstream.WithAPP14(t.Data, 1); err != nil {
		return err
	}
	t.Color = microtome.ColorYCbCr
	return nil
}
