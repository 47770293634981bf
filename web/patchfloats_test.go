package web

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth"
)

const imageNet = `"mean":[0.485,0.456,0.406],"std":[0.229,0.224,0.225],`

// floatTypes are the types of floats, by number, name and NumPy's name.
var floatTypes = []struct {
	typ       microtome.DataType
	name, npy string
}{{microtome.Float16, "float16", "<f2"}, {microtome.BFloat16, "bfloat16", ""}, {microtome.Float32, "float32", "<f4"}}

// inFloats is an array of uint8, pixel by pixel, as it must be in floats.
func inFloats(t *testing.T, pix []byte, typ microtome.DataType) []byte {
	t.Helper()
	lut, err := microtome.NewLUT(typ, [3]float64{0.485, 0.456, 0.406}, [3]float64{0.229, 0.224, 0.225})
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for i, v := range pix {
		word := binary.LittleEndian.AppendUint32(nil, lut[i%3][v])
		out = append(out, word[:typ.Bytes()]...)
	}
	return out
}

// planes makes NCHW of patches in NHWC whose samples have so many bytes.
func planes(pix []byte, patch, size int) (out []byte) {
	for ; len(pix) > 0; pix = pix[patch:] {
		for c := range 3 {
			for at := c * size; at < patch; at += 3 * size {
				out = append(out, pix[at:at+size]...)
			}
		}
	}
	return out
}

// TestPatchesFloats: each type in each layout and format, failed items included.
func TestPatchesFloats(t *testing.T) {
	s := newSite(t, nil, nil)
	bytesOf := []byte{7, 7, 7, 7, 7, 7, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 9, 9, 9, 9, 9, 9}
	for _, f := range floatTypes {
		size := f.typ.Bytes()
		for _, layout := range []string{"NHWC", "NCHW"} {
			body := fmt.Sprintf(`"dtype":%q,"layout":%q,"fill":200,%s%s}`, f.name, layout, imageNet, fourItems)
			pix := inFloats(t, bytesOf, f.typ)
			if layout == "NCHW" {
				pix = planes(pix, 6*size, size)
			}
			name := f.name + " " + layout
			w := s.post("{" + body)
			want(t, name, w, 200, "")
			b := w.Body.Bytes()
			if len(b) != 64+4*8+24*size || b[28] != byte(f.typ) || b[30] != 200 || binary.LittleEndian.Uint64(b[56:]) != uint64(24*size) ||
				w.Header().Get("Content-Length") != fmt.Sprint(len(b)) || !bytes.Equal(b[96:], pix) {
				t.Fatalf("%s: %x\nwant pixels %x", name, b, pix)
			}
			last := s.post(`{"statuses":"last",` + body).Body.Bytes()
			if len(last) != len(b) || !bytes.Equal(last[64:64+24*size], pix) || binary.LittleEndian.Uint64(last[40:]) != uint64(64+24*size) {
				t.Errorf("%s, statuses last: %x", name, last)
			}
			if f.npy == "" {
				want(t, name+", npy", s.post(`{"format":"npy",`+body), 400, "malformed")
				continue
			}
			shape := map[string]string{"NHWC": "(4, 1, 2, 3)", "NCHW": "(4, 3, 1, 2)"}[layout]
			parts := readParts(t, s.postTo("/patches?statuses=1", `{"format":"npy",`+body))
			for way, b := range map[string][]byte{"whole": s.post(`{"format":"npy",` + body).Body.Bytes(),
				"streamed": s.post(`{"format":"npy",`+body, "TE: trailers").Body.Bytes(), "in parts": parts[0].body} {
				if len(b) != 128+24*size || !bytes.Equal(b[128:], pix) || !strings.Contains(string(b[:128]), "{'descr': '"+f.npy+"', 'fortran_order': False, 'shape': "+shape) {
					t.Errorf("%s, npy %s: %q, want pixels %x", name, way, b, pix)
				}
			}
		}
	}
	if s.reader.lent.Load() != 0 {
		t.Errorf("%d pixels not released", s.reader.lent.Load())
	}
}

// TestPatchesFloatsAlone: without mean and std a sample is x/255, and one number
// is for all channels.
func TestPatchesFloatsAlone(t *testing.T) {
	s := newSite(t, nil, nil)
	sample := func(w *httptest.ResponseRecorder) float32 {
		want(t, "float32", w, 200, "")
		b := w.Body.Bytes()
		return math.Float32frombits(binary.LittleEndian.Uint32(b[len(b)-4:]))
	}
	const item = `"dtype":"float32","width":1,"height":1,"items":[{"slide":"a.svs","x":51,"y":0}]}`
	for settings, want := range map[string]float32{``: 51 / 255.0, `"mean":[0.7],`: -0.5, `"std":[0.4],`: 0.5, `"mean":[0,0,0.1],"std":[0.2],`: 0.5,
		`"channels":1,"mean":[0.1],"std":[0.2],`: 0.5, `"mean":null,"std":null,`: 51 / 255.0} {
		if got := sample(s.post("{" + settings + item)); got != want {
			t.Errorf("%s %g, want %g", settings, got, want)
		}
	}
	// The fake's slides are grey: three numbers say that there are three channels.
	if n := s.post(`{"mean":[0,0,0],` + item).Body.Len(); n != 64+8+12 {
		t.Errorf("%d bytes", n)
	}
}

func TestPatchesFloatsRefused(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.MaxPixels = 1000 })
	for body, says := range map[string]string{
		`"dtype":"float32","format":"png",`:      "dtype float32 is for arrays, not for png",
		`"dtype":"float16","format":"jpg",`:      "dtype float16 is for arrays, not for jpeg",
		`"dtype":"bfloat16","format":"npy",`:     "ask for format raw, or for float16 or float32",
		`"mean":[0.5],`:                          "not for uint8",
		`"dtype":"float32","std":[0],`:           "std of channel 0 is 0, not a finite number above 0",
		`"dtype":"float32","std":[1,1,-1],`:      "std of channel 2 is -1",
		`"dtype":"float32","mean":[1,2],`:        "mean has 2 numbers",
		`"dtype":"float32","std":[],`:            "std has 0 numbers",
		`"dtype":"float32","mean":[1,2,null],`:   "mean holds null",
		`"dtype":"float32","mean":[1e999],`:      "mean is of the wrong kind or too large",
		`"dtype":"float32","mean":[NaN],`:        "invalid character 'N'",
		`"dtype":"float32","mean":0.5,`:          "mean is of the wrong kind",
		`"dtype":"float16","std":[0.00001],`:     "which float16 can't hold",
		`"dtype":"float32","std":[1],"std":[2],`: "std is given twice",
	} {
		w := s.post(`{` + body + fourItems + `}`)
		want(t, body, w, 400, "malformed")
		if !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %s, want %q", body, w.Body, says)
		}
	}
	one := strings.Replace(fourItems, `"channels":3`, `"dtype":"float32","channels":1,"mean":[0,0,0]`, 1)
	want(t, "three means of one channel", s.post(`{`+one+`}`), 400, "malformed")
	for _, typ := range []string{"float64", "int8", "Float32"} {
		want(t, typ, s.post(`{"dtype":"`+typ+`",`+fourItems+`}`), 415, "unsupported")
	}
}

// TestPatchesFloatsCount: the limit and the room are of bytes.
func TestPatchesFloatsCount(t *testing.T) {
	s := newSite(t, nil, func(o *Options) { o.MaxPixels, o.BatchBytes = 1000, 1<<20 })
	room := s.Handler.(*server).room
	var used int64
	s.reader.block = func(ctx context.Context) error {
		used = room.Used()
		return nil
	}
	for typ, most := range map[string]int{"uint8": 1000, "float16": 500, "bfloat16": 500, "float32": 250} {
		body := func(width int) string {
			return fmt.Sprintf(`{"dtype":%q,"width":%d,"height":1,"items":[{"slide":"a.svs","x":1,"y":0},{"slide":"a.svs","x":2,"y":0}]}`, typ, width)
		}
		want(t, typ, s.post(body(most/2)), 200, "")
		if used != 3000 || room.Used() != 0 {
			t.Errorf("%s: %d bytes were taken, %d still are", typ, used, room.Used())
		}
		w := s.post(body(most/2 + 1))
		want(t, typ, w, 413, "over_limit")
		if !strings.Contains(w.Body.String(), fmt.Sprintf("of at most %d of %s in all", most, typ)) {
			t.Errorf("%s: %s", typ, w.Body)
		}
	}
}

// TestRealPatchFloats: the floats of a batch are its bytes through the table, on
// and off the slide.
func TestRealPatchFloats(t *testing.T) {
	s := newRealSite(t, map[string]synth.Spec{"a.svs": svs(1)}, nil)
	const n, size = 3, 120 * 110 * 3
	body := `"width":120,"height":110,"items":[{"slide":"a.svs","x":300,"y":200},{"slide":"a.svs","x":-60,"y":-50,"mpp":1.3},{"slide":"a.svs","x":5000,"y":0,"background":"102030"}]}`
	plain := s.post("{" + body)
	want(t, "uint8", plain, 200, "")
	pix := plain.Body.Bytes()[64+8*n:]
	if !bytes.Equal(pix[len(pix)-3:], []byte{0x10, 0x20, 0x30}) {
		t.Errorf("the background is %x", pix[len(pix)-3:])
	}
	for _, f := range floatTypes {
		mine := inFloats(t, pix, f.typ)
		if got := s.post(fmt.Sprintf(`{"dtype":%q,%s%s`, f.name, imageNet, body)).Body.Bytes()[64+8*n:]; !bytes.Equal(got, mine) {
			t.Errorf("%s: other values", f.name)
		}
		got := s.post(fmt.Sprintf(`{"dtype":%q,"layout":"NCHW",%s%s`, f.name, imageNet, body)).Body.Bytes()[64+8*n:]
		if !bytes.Equal(got, planes(mine, size*f.typ.Bytes(), f.typ.Bytes())) {
			t.Errorf("%s, NCHW: other values", f.name)
		}
	}
}
