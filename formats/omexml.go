package formats

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/microtome/microtome"
)

// Bounds of an OME-XML block. The text itself is bounded by Limits.
const (
	maxXMLDepth    = 64
	maxXMLElements = 1 << 20
	maxOMEImages   = 1 << 10
)

// omeDoc is what is read of an OME-XML block (OME model 2016-06 and its
// predecessors; namespaces are not looked at).
type omeDoc struct {
	UUID       string // of the root: names this file
	BinaryOnly string // the companion file that holds the metadata, if any
	Images     []omeImage
	Powers     map[string]float64 // Objective ID to NominalMagnification
}

type omeImage struct {
	Name      string
	Objective string // ID of an Objective
	Pixels    omePixels
}

type omePixels struct {
	Present             bool
	Order, Type         string
	SizeX, SizeY        int64
	SizeC, SizeZ, SizeT int
	PhysicalX           float64 // in PhysicalUnitX; 0 when absent
	PhysicalY           float64
	UnitX, UnitY        string
	Channels            []omeChannel
	Blocks              []omeBlock
}

type omeChannel struct {
	Name    string
	Color   *microtome.RGB
	Samples int // SamplesPerPixel; 0 when not said
}

// omeBlock is one TiffData: a run of planes in this file or another.
type omeBlock struct {
	IFD, Planes            int // -1 when not said
	FirstC, FirstZ, FirstT int
	UUID, File             string
}

// looksLikeOME says whether a description claims to be OME-XML.
func looksLikeOME(description string) bool {
	head := strings.TrimLeft(description, "\ufeff \t\r\n")
	if !strings.HasPrefix(head, "<") {
		return false
	}
	return strings.Contains(head[:min(len(head), 4096)], "<OME") ||
		strings.Contains(head[:min(len(head), 4096)], ":OME")
}

// parseOME reads an OME-XML block token by token, so that neither its depth
// nor its length decides how much is held.
func parseOME(text string) (*omeDoc, error) {
	dec := xml.NewDecoder(strings.NewReader(strings.TrimLeft(text, "\ufeff \t\r\n")))
	dec.CharsetReader = readCharset
	r := omeReader{doc: &omeDoc{Powers: map[string]float64{}}}
	for elements := 0; ; {
		token, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return r.finish()
		case err != nil:
			return nil, fmt.Errorf("OME-XML: %w: %v", microtome.ErrCorrupt, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if elements++; elements > maxXMLElements || len(r.path) >= maxXMLDepth {
				return nil, fmt.Errorf("OME-XML: more than %d elements or %d deep: %w",
					maxXMLElements, maxXMLDepth, microtome.ErrLimit)
			}
			if err := r.start(e); err != nil {
				return nil, err
			}
		case xml.CharData:
			r.text(e)
		case xml.EndElement:
			r.path = r.path[:len(r.path)-1]
		}
	}
}

// readCharset accepts the encodings whose bytes are UTF-8 already.
func readCharset(charset string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(charset) {
	case "utf-8", "utf8", "us-ascii", "ascii":
		return r, nil
	}
	return nil, fmt.Errorf("encoding %q", charset)
}

// omeReader holds the place in the document: path is the open elements.
type omeReader struct {
	doc  *omeDoc
	path []string
}

func (r *omeReader) parent() string {
	if len(r.path) < 2 {
		return ""
	}
	return r.path[len(r.path)-2]
}

func (r *omeReader) image() *omeImage {
	if len(r.doc.Images) == 0 {
		return nil
	}
	return &r.doc.Images[len(r.doc.Images)-1]
}

// start takes an element that has just been opened.
func (r *omeReader) start(e xml.StartElement) error {
	r.path = append(r.path, e.Name.Local)
	a := attributes{list: e.Attr}
	switch name := e.Name.Local; {
	case name == "OME" && len(r.path) == 1:
		r.doc.UUID = a.text("UUID")
	case name == "BinaryOnly" && r.parent() == "OME":
		r.doc.BinaryOnly = a.text("MetadataFile")
	case name == "Objective":
		if x, ok := positive(a.text("NominalMagnification")); ok && len(r.doc.Powers) < maxOMEImages {
			r.doc.Powers[a.text("ID")] = x
		}
	case name == "Image" && r.parent() == "OME":
		if len(r.doc.Images) == maxOMEImages {
			return fmt.Errorf("OME-XML: more than %d images: %w", maxOMEImages, microtome.ErrLimit)
		}
		r.doc.Images = append(r.doc.Images, omeImage{Name: a.text("Name")})
	case r.image() != nil:
		r.inImage(name, &a)
	}
	if a.err != nil {
		return fmt.Errorf("OME-XML: %s: %w: %v", e.Name.Local, microtome.ErrCorrupt, a.err)
	}
	return nil
}

// inImage takes an element below an Image.
func (r *omeReader) inImage(name string, a *attributes) {
	image, parent := r.image(), r.parent()
	p := &image.Pixels
	switch {
	case (name == "ObjectiveSettings" || name == "ObjectiveRef") && parent == "Image":
		image.Objective = a.text("ID")
	case name == "Pixels" && parent == "Image" && !p.Present:
		*p = readPixels(a)
	case name == "Channel" && parent == "Pixels":
		p.Channels = append(p.Channels, omeChannel{
			Name:    a.text("Name"),
			Color:   omeColor(a.text("Color")),
			Samples: a.count("SamplesPerPixel", 0),
		})
	case name == "TiffData" && parent == "Pixels":
		p.Blocks = append(p.Blocks, omeBlock{
			IFD: a.count("IFD", -1), Planes: a.count("PlaneCount", -1),
			FirstC: a.count("FirstC", 0), FirstZ: a.count("FirstZ", 0), FirstT: a.count("FirstT", 0),
		})
	case name == "UUID" && parent == "TiffData" && len(p.Blocks) > 0:
		p.Blocks[len(p.Blocks)-1].File = a.text("FileName")
	}
}

func readPixels(a *attributes) omePixels {
	p := omePixels{
		Present: true,
		Order:   a.text("DimensionOrder"),
		Type:    a.text("Type"),
		SizeX:   int64(a.count("SizeX", 0)),
		SizeY:   int64(a.count("SizeY", 0)),
		SizeC:   a.count("SizeC", 1),
		SizeZ:   a.count("SizeZ", 1),
		SizeT:   a.count("SizeT", 1),
		UnitX:   a.text("PhysicalSizeXUnit"),
		UnitY:   a.text("PhysicalSizeYUnit"),
	}
	if p.Type == "" {
		p.Type = a.text("PixelType") // before 2012
	}
	p.PhysicalX, _ = positive(a.text("PhysicalSizeX"))
	p.PhysicalY, _ = positive(a.text("PhysicalSizeY"))
	return p
}

// text takes character data: only a TiffData's UUID is read.
func (r *omeReader) text(data xml.CharData) {
	if len(r.path) == 0 || r.path[len(r.path)-1] != "UUID" || r.parent() != "TiffData" || r.image() == nil {
		return
	}
	blocks := r.image().Pixels.Blocks
	if len(blocks) > 0 && len(data) < 256 {
		blocks[len(blocks)-1].UUID += strings.TrimSpace(string(data))
	}
}

func (r *omeReader) finish() (*omeDoc, error) {
	if len(r.doc.Images) == 0 && r.doc.BinaryOnly == "" {
		return nil, fmt.Errorf("OME-XML: no Image: %w", microtome.ErrCorrupt)
	}
	return r.doc, nil
}

// attributes looks up an element's attributes and keeps the first error.
type attributes struct {
	list []xml.Attr
	err  error
}

func (a *attributes) text(name string) string {
	for _, x := range a.list {
		if x.Name.Local == name {
			return x.Value
		}
	}
	return ""
}

// count is a whole number of at most 31 bits.
func (a *attributes) count(name string, otherwise int) int {
	s := strings.TrimSpace(a.text(name))
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("%s=%q", name, s)
	}
	return int(n)
}

// omeColor reads a Channel's colour: a signed 32-bit RGBA number.
func omeColor(s string) *microtome.RGB {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < -1<<31 || n >= 1<<32 {
		return nil
	}
	return &microtome.RGB{R: uint8(n >> 24), G: uint8(n >> 16), B: uint8(n >> 8)}
}

// microns turns a length in an OME unit into microns.
func microns(x float64, unit string) (float64, bool) {
	scale := 0.0
	switch unit {
	case "", "µm", "μm", "um", "micron", "microns": // two code points for mu
		scale = 1
	case "nm":
		scale = 1e-3
	case "pm":
		scale = 1e-6
	case "Å":
		scale = 1e-4
	case "mm":
		scale = 1e3
	case "cm":
		scale = 1e4
	case "m":
		scale = 1e6
	case "in":
		scale = 25400
	}
	x *= scale
	return x, x > 0 && x <= maxPositive
}
