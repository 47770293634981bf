package formats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
)

// Private tags and texts of scanners whose TIFF needs its own layout: shown as
// a plain TIFF it would look right and be wrong (levels of padded size,
// overlapping tiles, several regions).
const (
	tagNDPI     = 65420
	leicaSchema = "http://www.leica-microsystems.com/scn/"
)

// foreign names the tag and value by which a file is another vendor's, nil for
// a file that is none.
func foreign(in *input) *microtome.Unsupported {
	software, _ := textValue(in.main, tiff.Software)
	switch {
	case in.main.Has(tagNDPI):
		return &microtome.Unsupported{Tag: "65420", Value: "(Hamamatsu NDPI)"}
	case strings.Contains(in.text[:min(len(in.text), 1<<12)], leicaSchema):
		return &microtome.Unsupported{Tag: "ImageDescription", Value: "(Leica SCN)"}
	case strings.HasPrefix(software, "Philips"):
		return &microtome.Unsupported{Tag: "Software", Value: fmt.Sprintf("%q (Philips TIFF)", software)}
	case strings.HasPrefix(software, "MedScan") && strings.Contains(in.text, "OverlapsXY"):
		return &microtome.Unsupported{Tag: "Software", Value: fmt.Sprintf("%q (Trestle)", software)}
	case isVentana(in.main):
		return &microtome.Unsupported{Tag: "XMP", Value: "iScan (Ventana BIF)"}
	}
	return nil
}

// isVentana looks for the scanner's element in a short XMP block.
func isVentana(d *tiff.Dir) bool {
	if n := d.Count(tiff.XMP); n == 0 || n > 1<<16 {
		return false
	}
	xmp, err := d.Bytes(tiff.XMP)
	return err == nil && bytes.Contains(xmp, []byte("<iScan"))
}

func detectForeign(in *input) bool { return foreign(in) != nil }

func refuseForeign(in *input) (*layout, error) { return nil, foreign(in) }

// signatures are the first bytes of files that are met beside slides.
func signatures() []signature {
	return []signature{
		{0, "\x89PNG", "PNG"},
		{0, "\xff\xd8\xff", "JPEG"},
		{0, "\x00\x00\x00\x0cjP  ", "JPEG 2000"},
		{0, "\xff\x4f\xff\x51", "JPEG 2000 codestream"},
		{128, "DICM", "DICOM"},
		{0, "PK\x03\x04", "ZIP"},
		{8, "WEBP", "WebP"},
		{0, "<?xml", "XML"},
		{0, "SIS\x00", "Olympus ETS"},
	}
}

type signature struct {
	at          int
	bytes, name string
}

// checkSignature refuses what is no TIFF by its first bytes.
func checkSignature(ctx context.Context, src microtome.Source) error {
	size := src.Size()
	if size == 0 {
		return fmt.Errorf("the file is empty: %w", microtome.ErrCorrupt)
	}
	head := make([]byte, min(size, 132))
	if _, err := src.ReadAt(ctx, head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(head) >= 4 && (bytes.HasPrefix(head, []byte("II")) || bytes.HasPrefix(head, []byte("MM"))) {
		return nil
	}
	for _, s := range signatures() {
		if len(head) >= s.at+len(s.bytes) && string(head[s.at:s.at+len(s.bytes)]) == s.bytes {
			return &microtome.Unsupported{Tag: "file signature", Value: fmt.Sprintf("%q (%s)", s.bytes, s.name)}
		}
	}
	return &microtome.Unsupported{Tag: "file signature", Value: fmt.Sprintf("%q (no TIFF)", head[:min(len(head), 4)])}
}
