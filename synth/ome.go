package synth

import (
	"fmt"
	"strings"
)

// description is tag 270 of the first directory of a format other than SVS.
func (wr *writer) description() string {
	if wr.s.Format == OME {
		return wr.omeXML()
	}
	return ""
}

// omePlanes writes one pyramid per plane, chained, in the order C, Z, T.
func (wr *writer) omePlanes() error {
	for p := range wr.s.planes() {
		text := ""
		if p == 0 {
			text = wr.omeXML()
		}
		if err := wr.pyramid(text, p); err != nil {
			return err
		}
	}
	return nil
}

// omeXML is the metadata block of the OME 2016-06 schema.
func (wr *writer) omeXML() string {
	s := wr.s
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` +
		`<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ` +
		`xsi:schemaLocation="http://www.openmicroscopy.org/Schemas/OME/2016-06 http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd">`)
	if s.AppMag > 0 {
		fmt.Fprintf(&b, `<Instrument ID="Instrument:0"><Objective ID="Objective:0:0" NominalMagnification="%g"/></Instrument>`, s.AppMag)
	}
	b.WriteString(`<Image ID="Image:0" Name="synthetic">`)
	if s.AppMag > 0 {
		b.WriteString(`<ObjectiveSettings ID="Objective:0:0"/>`)
	}
	sizeC := 3
	if s.planes() > 0 {
		sizeC = max(s.SizeC, 1)
	}
	fmt.Fprintf(&b, `<Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="uint8" SizeX="%d" SizeY="%d" SizeC="%d" SizeZ="%d" SizeT="%d"`,
		s.Width, s.Height, sizeC, max(s.SizeZ, 1), max(s.SizeT, 1))
	if s.MPP > 0 {
		fmt.Fprintf(&b, ` PhysicalSizeX="%g" PhysicalSizeXUnit="µm" PhysicalSizeY="%g" PhysicalSizeYUnit="µm"`, s.MPP, s.MPP)
	}
	b.WriteString(">")
	if s.planes() == 0 {
		b.WriteString(`<Channel ID="Channel:0:0" SamplesPerPixel="3"/><TiffData IFD="0" PlaneCount="1"/>`)
	} else {
		for c := range sizeC {
			fmt.Fprintf(&b, `<Channel ID="Channel:0:%d" Name="%s" SamplesPerPixel="1"/>`, c, channelName(c))
		}
		fmt.Fprintf(&b, `<TiffData IFD="0" PlaneCount="%d"/>`, s.planes())
	}
	b.WriteString(`</Pixels></Image></OME>`)
	return b.String()
}

// channelName is a stain for the first channels.
func channelName(c int) string {
	names := [...]string{"DAPI", "FITC", "Cy3", "Cy5"}
	if c < len(names) {
		return names[c]
	}
	return fmt.Sprintf("Channel %d", c)
}
