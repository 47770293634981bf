package formats

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/microtome/microtome"
)

// omeText wraps the inside of one Pixels element.
func omeText(pixelAttributes, inside string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:1">` +
		`<Instrument ID="Instrument:0"><Objective ID="Objective:0" NominalMagnification="20"/></Instrument>` +
		`<Image ID="Image:0" Name="slide"><ObjectiveSettings ID="Objective:0"/><Pixels ` + pixelAttributes + `>` + inside + `</Pixels></Image></OME>`
}

func TestParseOME(t *testing.T) {
	doc, err := parseOME(omeText(
		`DimensionOrder="XYZCT" Type="uint8" SizeX="300" SizeY="200" SizeC="2" SizeZ="3" SizeT="1" PhysicalSizeX="250" PhysicalSizeXUnit="nm" PhysicalSizeY="0.25"`,
		`<Channel ID="c0" Name="DAPI" Color="65535" SamplesPerPixel="1"/><Channel Color="-16776961"/>`+
			`<TiffData IFD="4" PlaneCount="1" FirstZ="1" FirstC="1"><UUID FileName="a.tif">urn:uuid:1</UUID></TiffData>`))
	if err != nil {
		t.Fatal(err)
	}
	p := doc.Images[0].Pixels
	if p.SizeX != 300 || p.SizeY != 200 || p.SizeC != 2 || p.SizeZ != 3 || p.SizeT != 1 || p.Order != "XYZCT" {
		t.Errorf("pixels = %+v", p)
	}
	if x, _ := microns(p.PhysicalX, p.UnitX); math.Abs(x-0.25) > 1e-12 {
		t.Errorf("mpp = %v, want 0.25", x)
	}
	if c := p.Channels[0]; c.Name != "DAPI" || *c.Color != (microtome.RGB{R: 0, G: 0, B: 255}) || c.Samples != 1 {
		t.Errorf("channel 0 = %+v", c)
	}
	if c := p.Channels[1]; *c.Color != (microtome.RGB{R: 255}) {
		t.Errorf("channel 1 = %+v, want red from a negative number", *c.Color)
	}
	if b := p.Blocks[0]; b != (omeBlock{IFD: 4, Planes: 1, FirstZ: 1, FirstC: 1, UUID: "urn:uuid:1", File: "a.tif"}) {
		t.Errorf("block = %+v", b)
	}
	if doc.UUID != "urn:uuid:1" || doc.Powers[doc.Images[0].Objective] != 20 {
		t.Errorf("UUID %q, power %v", doc.UUID, doc.Powers)
	}
}

func TestParseOMEFailures(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		kind error
	}{
		"not closed":       {`<OME><Image><Pixels SizeX="1">`, microtome.ErrCorrupt},
		"no image":         {`<OME></OME>`, microtome.ErrCorrupt},
		"a word as a size": {`<OME><Image><Pixels SizeX="x"/></Image></OME>`, microtome.ErrCorrupt},
		"a size above 31 bits": {
			`<OME><Image><Pixels SizeX="99999999999"/></Image></OME>`, microtome.ErrCorrupt},
		"too deep":        {strings.Repeat("<a>", 1000), microtome.ErrLimit},
		"too many images": {"<OME>" + strings.Repeat("<Image></Image>", maxOMEImages+1) + "</OME>", microtome.ErrLimit},
		"an entity bomb": {`<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><OME><Image Name="&b;"/></OME>`,
			microtome.ErrCorrupt},
		"an encoding we don't have": {`<?xml version="1.0" encoding="utf-16"?><OME/>`, microtome.ErrCorrupt},
	} {
		if _, err := parseOME(c.text); !errors.Is(err, c.kind) {
			t.Errorf("%s: error %v, want %v", name, err, c.kind)
		}
	}
}

func TestMicrons(t *testing.T) {
	for unit, want := range map[string]float64{"": 0.5, "µm": 0.5, "μm": 0.5, "nm": 0.0005, "mm": 500, "Å": 0.00005, "in": 12700} {
		if got, ok := microns(0.5, unit); !ok || math.Abs(got-want) > want*1e-12 {
			t.Errorf("0.5 %s = %v, %v, want %v", unit, got, ok, want)
		}
	}
	for _, unit := range []string{"pixel", "reference frame", "parsec"} {
		if _, ok := microns(0.5, unit); ok {
			t.Errorf("0.5 %s is a length", unit)
		}
	}
	if _, ok := microns(0, "µm"); ok {
		t.Error("zero is a pixel size")
	}
}

func next(i int) int { return i + 1 }

// planeList is the directory of every plane in Planes.Index order.
func planeList(t *testing.T, pixels string, blocks string, samples, dirs int, step func(int) int) []int {
	t.Helper()
	doc, err := parseOME(omeText(`Type="uint8" SizeX="1" SizeY="1" `+pixels, blocks))
	if err != nil {
		t.Fatal(err)
	}
	m, err := planesOf(&doc.Images[0].Pixels, doc.UUID, samples, dirs, step, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return m.IFD
}

func TestPlanesOf(t *testing.T) {
	const c2z3 = `SizeC="2" SizeZ="3" SizeT="1" `
	skip1 := func(i int) int { return i + 2 }
	for name, c := range map[string]struct {
		pixels, blocks string
		samples, dirs  int
		step           func(int) int
		want           string
	}{
		// Planes.Index runs over c fastest: c0z0 c1z0 c0z1 c1z1 c0z2 c1z2.
		"no TiffData, c fastest":   {c2z3 + `DimensionOrder="XYCZT"`, ``, 1, 6, next, "[0 1 2 3 4 5]"},
		"no TiffData, z fastest":   {c2z3 + `DimensionOrder="XYZCT"`, ``, 1, 6, next, "[0 3 1 4 2 5]"},
		"one empty TiffData":       {c2z3 + `DimensionOrder="XYZCT"`, `<TiffData/>`, 1, 6, next, "[0 3 1 4 2 5]"},
		"fewer directories":        {c2z3 + `DimensionOrder="XYCZT"`, `<TiffData/>`, 1, 4, next, "[0 1 2 3 -1 -1]"},
		"IFD alone is one plane":   {c2z3 + `DimensionOrder="XYCZT"`, `<TiffData IFD="3"/>`, 1, 6, next, "[3 -1 -1 -1 -1 -1]"},
		"PlaneCount from an IFD":   {c2z3 + `DimensionOrder="XYCZT"`, `<TiffData IFD="1" PlaneCount="2" FirstZ="1"/>`, 1, 6, next, "[-1 -1 1 2 -1 -1]"},
		"planes in any order":      {c2z3 + `DimensionOrder="XYCZT"`, `<TiffData IFD="5"/><TiffData IFD="0" FirstC="1" FirstZ="2"/>`, 1, 6, next, "[5 -1 -1 -1 -1 0]"},
		"reduced ones between":     {c2z3 + `DimensionOrder="XYCZT"`, `<TiffData/>`, 1, 12, skip1, "[0 2 4 6 8 10]"},
		"a directory that is none": {c2z3 + `DimensionOrder="XYCZT"`, `<TiffData IFD="77"/>`, 1, 6, next, "[-1 -1 -1 -1 -1 -1]"},
		"outside the image":        {c2z3 + `DimensionOrder="XYCZT"`, `<TiffData IFD="1" FirstC="9"/>`, 1, 6, next, "[-1 -1 -1 -1 -1 -1]"},
		"a block without end":      {c2z3 + `DimensionOrder="XYCZT"`, `<TiffData IFD="0" PlaneCount="2000000000"/>`, 1, 6, next, "[0 1 2 3 4 5]"},
		"no order":                 {c2z3, ``, 1, 6, next, "[0 1 2 3 4 5]"},
		"RGB is one plane":         {`SizeC="3"`, `<Channel SamplesPerPixel="3"/><TiffData IFD="0"/>`, 3, 1, next, "[0]"},
		"RGB by the directory":     {`SizeC="3"`, `<TiffData IFD="0"/>`, 3, 1, next, "[0]"},
		"three planes of one":      {`SizeC="3"`, `<TiffData IFD="0" PlaneCount="3"/>`, 1, 3, next, "[0 1 2]"},
		"this file by its UUID":    {`SizeC="1"`, `<TiffData IFD="0"><UUID FileName="x">URN:uuid:1</UUID></TiffData>`, 1, 1, next, "[0]"},
	} {
		if got := fmt.Sprint(planeList(t, c.pixels, c.blocks, c.samples, c.dirs, c.step)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestPlanesElsewhere(t *testing.T) {
	doc, err := parseOME(omeText(`Type="uint8" SizeX="1" SizeY="1" SizeZ="2"`,
		`<TiffData IFD="0"><UUID FileName="a.tif">urn:uuid:1</UUID></TiffData>`+
			`<TiffData IFD="0" FirstZ="1"><UUID FileName="b.tif">urn:uuid:2</UUID></TiffData>`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = planesOf(&doc.Images[0].Pixels, doc.UUID, 1, 1, next, 1000)
	if !errors.Is(err, microtome.ErrUnsupported) || !strings.Contains(err.Error(), "TiffData FileName") || strings.Contains(err.Error(), "b.tif") {
		t.Errorf("error %v, want unsupported without the file's name", err)
	}
}

func TestTooManyPlanes(t *testing.T) {
	for _, sizes := range []string{`SizeC="2000000000" SizeZ="2000000000" SizeT="2000000000"`, `SizeC="1001"`} {
		doc, err := parseOME(omeText(`SizeX="1" SizeY="1" `+sizes, ``))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := planesOf(&doc.Images[0].Pixels, "", 1, 1, next, 1000); !errors.Is(err, microtome.ErrLimit) {
			t.Errorf("%s: error %v, want a limit", sizes, err)
		}
	}
}

func FuzzOMEXML(f *testing.F) {
	f.Add(omeText(`SizeX="3" SizeY="2" SizeC="2"`, `<Channel Name="x"/><TiffData IFD="0" PlaneCount="2"/>`))
	f.Add(`<OME UUID="u"><Image><Pixels SizeZ="3" DimensionOrder="XYTZC"><TiffData FirstZ="1"><UUID FileName="f">v</UUID></TiffData></Pixels></Image></OME>`)
	f.Add(`<OME><BinaryOnly MetadataFile="a" UUID="b"/></OME>`)
	f.Add(`<a:OME xmlns:a="x"><a:Image Name="label"/></a:OME>`)
	f.Add(strings.Repeat("<OME>", 70))
	f.Add(`<OME><Image><Pixels SizeC="0"/></Image></OME>`)
	f.Add(`<UUID/></OME>`)
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := parseOME(text)
		if err != nil {
			if !errors.Is(err, microtome.ErrCorrupt) && !errors.Is(err, microtome.ErrLimit) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		for i := range doc.Images {
			m, err := planesOf(&doc.Images[i].Pixels, doc.UUID, 1, 5, next, 1000)
			if err != nil {
				continue
			}
			for _, ifd := range m.IFD {
				if ifd < -1 || ifd >= 5 {
					t.Fatalf("plane in directory %d of 5", ifd)
				}
			}
		}
	})
}
