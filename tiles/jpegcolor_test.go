package tiles

import (
	"bytes"
	"errors"
	"testing"

	"github.com/microtome/microtome"
)

// segment is a marker segment.
func segment(marker byte, body string) string {
	return string([]byte{0xff, marker, 0, byte(len(body) + 2)}) + body
}

func TestWithColor(t *testing.T) {
	const (
		start = "\xff\xd8"
		jfif  = "JFIF\x00\x01\x02\x00\x00\x01\x00\x01\x00\x00"
		scan  = "\xff\xda\x00\x0c\x03\x00\x00\x01\x00\x02\x00\x00\x3f\x00data\xff\xd9"
	)
	frame := func(ids string) string {
		return segment(0xc0, "\x08\x00\x10\x00\x20\x03"+ids[:1]+"\x11\x00"+ids[1:2]+"\x11\x01"+ids[2:]+"\x11\x01")
	}
	adobeBody := func(transform string) string { return adobe[4:] + transform }
	tables := segment(0xdb, "t")
	plain := frame("\x01\x02\x03") + scan
	for name, c := range map[string]struct {
		in    string
		color microtome.Color
		want  string
	}{
		"rgb without markers":       {start + tables + plain, microtome.ColorRGB, start + adobe + "\x00" + tables + plain},
		"rgb with jfif":             {start + segment(0xe0, jfif) + tables + plain, microtome.ColorRGB, start + adobe + "\x00" + tables + plain},
		"rgb with adobe ycc":        {start + segment(0xee, adobeBody("\x01")) + plain, microtome.ColorRGB, start + segment(0xee, adobeBody("\x00")) + plain},
		"rgb with adobe and jfif":   {start + segment(0xee, adobeBody("\x01")) + segment(0xe0, jfif) + plain, microtome.ColorRGB, start + segment(0xee, adobeBody("\x00")) + plain},
		"ycc without markers":       {start + tables + plain, microtome.ColorYCbCr, start + tables + plain},
		"ycc with jfif":             {start + segment(0xe0, jfif) + plain, microtome.ColorYCbCr, start + segment(0xe0, jfif) + plain},
		"ycc with adobe rgb":        {start + segment(0xee, adobeBody("\x00")) + plain, microtome.ColorYCbCr, start + segment(0xee, adobeBody("\x01")) + plain},
		"ycc with ids that say rgb": {start + frame("RGB") + scan, microtome.ColorYCbCr, start + adobe + "\x01" + frame("RGB") + scan},
		"grey":                      {start + plain, microtome.ColorGray, start + plain},
		"fill bytes":                {start + "\xff\xff" + plain, microtome.ColorYCbCr, start + "\xff\xff" + plain},
	} {
		got, err := withColor([]byte(c.in), c.color, 32, 16)
		if err != nil || !bytes.Equal(got, []byte(c.want)) {
			t.Errorf("%s:\n got %x, %v\nwant %x", name, got, err, c.want)
		}
		again, err := withColor(bytes.Clone(got), c.color, 32, 16)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: a second time it changes", name)
		}
	}
	for name, in := range map[string]string{
		"empty": "", "overwritten": "\x11\xd8" + plain, "no frame": start + scan, "no scan": start + frame("\x01\x02\x03"),
		"cut": (start + plain)[:15], "other size": start + segment(0xc0, "\x08\x00\x11\x00\x20\x03\x01\x11\x00\x02\x11\x01\x03\x11\x01") + scan,
		"restart marker": start + "\xff\xd0" + plain, "length 1": start + "\xff\xdb\x00\x01" + plain,
	} {
		if _, err := withColor([]byte(in), microtome.ColorRGB, 32, 16); !errors.Is(err, microtome.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzWithColor(f *testing.F) {
	f.Add(testJPEG(32, 16), uint8(microtome.ColorRGB))
	f.Add([]byte("\xff\xd8\xff\xee\x00\x0eAdobe"), uint8(microtome.ColorYCbCr))
	f.Fuzz(func(t *testing.T, data []byte, c uint8) {
		out, err := withColor(data, microtome.Color(c), 32, 16)
		if err != nil {
			return
		}
		if m, err := scanJPEG(out); err != nil || m.width != 32 || m.height != 16 {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
