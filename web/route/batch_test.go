package route

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/microtome/microtome"
)

func TestParseBatch(t *testing.T) {
	b, err := ParseBatch([]byte(`{"slide":"a/b.svs","width":256,"height":128,"mpp":0.5,"layout":"NCHW","format":"npy","channels":3,
		"fill":255,"origin":"bounds","mpp_tolerance":0.1,"quality":90,"dtype":"uint8","background":"#0a0b0c",
		"items":[{"x":-5,"y":7},{"x":9007199254740992,"y":0,"slide":"c.svs","level":2,"c":1,"z":2,"t":3}]}`))
	if err != nil {
		t.Fatal(err)
	}
	bg := &microtome.RGB{R: 10, G: 11, B: 12}
	want := Batch{Width: 256, Height: 128, Format: "npy", Planar: true, Channels: 3, Quality: 90, Fill: 255, Bounds: true, Tolerance: 0.1,
		Items: []BatchItem{
			{Slide: "a/b.svs", L0X: -5, L0Y: 7, Scale: ScaleMPP, Value: 0.5, Background: bg},
			{Slide: "c.svs", L0X: 1 << 53, Scale: ScaleLevel, Value: 2, C: 1, Z: 2, T: 3, Background: bg},
		}}
	if !reflect.DeepEqual(b, want) {
		t.Errorf("%+v\nwant %+v", b, want)
	}
	if b, err = ParseBatch([]byte(`{"width":1,"height":1,"items":[{"slide":"a","x":0,"y":0}]}`)); err != nil || b.Format != "raw" {
		t.Error(b, err)
	}
}

func TestParseBatchRefuses(t *testing.T) {
	item := func(s string) string { return `{"slide":"a","width":1,"height":1,"items":[{"x":0,"y":0},` + s + `]}` }
	batch := func(s string) string { return `{"slide":"a","width":1,"height":1,` + s + `,"items":[{"x":0,"y":0}]}` }
	for _, c := range []struct {
		body, says string
		kind       error
	}{
		{``, "object", microtome.ErrMalformed}, {`[]`, "object", microtome.ErrMalformed}, {`{"width":1`, "EOF", microtome.ErrMalformed},
		{`{"slide":"a","width":1,"height":1,"items":[]}`, "no items", microtome.ErrMalformed},
		{`{"slide":"a","height":1,"items":[{"x":0,"y":0}]}`, "width", microtome.ErrMalformed},
		{batch(`"widht":3`), `"widht"`, microtome.ErrMalformed}, {batch(`"layout":"HWC"`), "layout", microtome.ErrMalformed},
		{strings.Replace(batch(`"fill":0`), `"width":1`, `"width":16777217`, 1), "width and height", microtome.ErrMalformed}, {batch(`"quality":1e400`), "quality is of the wrong kind", microtome.ErrMalformed},
		{batch(`"fill":1.5`), "fill is of the wrong kind", microtome.ErrMalformed}, {batch(`"channels":2`), "channels", microtome.ErrMalformed},
		{batch(`"fill":256`), "fill", microtome.ErrMalformed}, {batch(`"quality":101`), "quality", microtome.ErrMalformed},
		{batch(`"mpp_tolerance":1`), "mpp_tolerance", microtome.ErrMalformed}, {batch(`"origin":"x"`), "origin", microtome.ErrMalformed},
		{batch(`"level":0,"mpp":1`), "more than one", microtome.ErrMalformed}, {batch(`"mpp":0`), "mpp", microtome.ErrMalformed},
		{batch(`"mpp":NaN`), "at mpp: invalid character 'N' looking for beginning of value", microtome.ErrMalformed}, {batch(`"background":"red"`), "background", microtome.ErrMalformed},
		{batch(`"format":"gif"`), "gif", microtome.ErrUnsupported}, {batch(`"dtype":"float64"`), "float64", microtome.ErrUnsupported},
		{batch(`"format":"png","layout":"NCHW"`), "NCHW", microtome.ErrMalformed}, {batch(`"statuses":"x"`), "statuses", microtome.ErrMalformed},
		{batch(`"format":"npy","statuses":"last"`), "statuses last", microtome.ErrMalformed},
		{item(`{"x":0}`), "item 1: x and y", microtome.ErrMalformed}, {item(`{"x":0.5,"y":0}`), "item 1: x is", microtome.ErrMalformed},
		{item(`{"x":"0","y":0}`), "item 1: x is", microtome.ErrMalformed}, {item(`{"x":0,"y":0,"zoom":1}`), `item 1: unknown field "zoom"`, microtome.ErrMalformed},
		{item(`{"x":9007199254740993,"y":0}`), "item 1: x or y", microtome.ErrMalformed}, {item(`7`), "item 1: not a JSON object", microtome.ErrMalformed},
		{item(`{"x":0,"y":0,"c":-1}`), "item 1: c is", microtome.ErrMalformed}, {item(`{"x":0,"y":0,"level":-1}`), "item 1: level", microtome.ErrMalformed},
		{`{"width":1,"height":1,"items":[{"x":0,"y":0}]}`, "item 0: no slide", microtome.ErrMalformed},
		{item(`{"x":0,"y":NaN}`), "item 1, at y: invalid character 'N'", microtome.ErrMalformed},
		{item(`{"x":-Infinity,"y":0}`), "item 1, at x: invalid character", microtome.ErrMalformed},
		{item(`{"x":0,"y"`), "item 1, at", microtome.ErrMalformed}, {item(`{"background":"a,{\\"`), "item 1", microtome.ErrMalformed},
		{item(`{"x":0,"y":0,"x":1}`), "item 1: x is given twice", microtome.ErrMalformed}, {batch(`"width":2`), "width is given twice", microtome.ErrMalformed},
		{item(`{"X":0,"y":0}`), `item 1: unknown field "X"`, microtome.ErrMalformed}, {batch(`"Layout":"NCHW"`), `unknown field "Layout"`, microtome.ErrMalformed},
		{item(`{"\u0078":0,"y":0}`), "item 1: unknown field", microtome.ErrMalformed},
		{item(`{"x":0,"y":0}`) + `x`, "behind", microtome.ErrMalformed},
		{`{"slide":"a","width":1,"height":1,"items":[` + strings.Repeat(`{"x":0,"y":0},`, MaxItems) + `{"x":0,"y":0}]}`, fmt.Sprint(MaxItems), microtome.ErrLimit},
	} {
		_, err := ParseBatch([]byte(c.body))
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.80s: %v, want %v with %q", c.body, err, c.kind, c.says)
		}
	}
}

func FuzzParseBatch(f *testing.F) {
	f.Add([]byte(`{"slide":"a","width":2,"height":3,"mpp":0.5,"items":[{"x":1,"y":-2,"level":1,"background":"ffffff"}]}`))
	f.Add([]byte(`{"slide":"a\\"","width":2,"height":3,"items":[{"x":1,"y":2,"x":3},{"X":0,"y":NaN`))
	f.Add([]byte(`{"width":1e9,"items":[{}],"layout":"NCHW"}`))
	f.Add([]byte(`{"slide":"a","width":2,"height":3,"dtype":"float16","mean":[0.5,1e4,0],"std":[null],"items":[{"x":1,"y":2}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := ParseBatch(body)
		if err != nil {
			if !errors.Is(err, microtome.ErrMalformed) && !errors.Is(err, microtome.ErrLimit) && !errors.Is(err, microtome.ErrUnsupported) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if b.Width < 1 || b.Height < 1 || len(b.Items) == 0 || b.Tolerance < 0 || b.Tolerance >= 1 || (b.LUT == nil) != (b.Type == microtome.Uint8) {
			t.Fatalf("%q: %+v", body, b)
		}
		for _, it := range b.Items {
			if it.Slide == "" || it.Value < 0 || it.C < 0 || it.Z < 0 || it.T < 0 {
				t.Fatalf("%q: %+v", body, it)
			}
		}
	})
}
