package sof

import (
	"errors"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/synth/jpegenc"
)

func stream(t testing.TB, o jpegenc.Options) []byte {
	t.Helper()
	enc, err := jpegenc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	n := o.Color.Components()
	b, err := enc.Encode(nil, make([]byte, 20*10*n), 20, 10, 20*n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRead(t *testing.T) {
	f, err := Read(stream(t, jpegenc.Options{Sampling: jpegenc.S420, Adobe: true, Transform: 1, IDs: []byte("RGB")}))
	if err != nil || f.Width != 20 || f.Height != 10 || f.Components != 3 || f.MaxH() != 2 || f.MaxV() != 2 || f.Adobe != 1 || f.IDs[0] != 'R' || f.Precision != 8 {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := Read(stream(t, jpegenc.Options{Color: jpegenc.Gray})); err != nil || f.Components != 1 || f.Adobe != -1 {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestFillBytesBeforeMarkers(t *testing.T) {
	b := stream(t, jpegenc.Options{})
	b = append([]byte{0xFF, 0xD8, 0xFF, 0xFF, 0xFF}, b[2:]...)
	if _, err := Read(b); err != nil {
		t.Error(err)
	}
}

// TestEveryPrefixIsCorrupt: no cut of a header is taken for a whole one.
func TestEveryPrefixIsCorrupt(t *testing.T) {
	b := stream(t, jpegenc.Options{})
	f, _ := Read(b)
	for n := range b {
		g, err := Read(b[:n])
		if err == nil && g != f || err != nil && !errors.Is(err, microtome.ErrCorrupt) {
			t.Fatalf("%d bytes: %+v, %v", n, g, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(stream(f, jpegenc.Options{}))
	f.Add(stream(f, jpegenc.Options{Color: jpegenc.Gray, JFIF: true}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Read(b); err != nil && !errors.Is(err, microtome.ErrCorrupt) {
			t.Fatal(err)
		}
		if _, err := Rewrite(nil, b); err != nil && !errors.Is(err, microtome.ErrCorrupt) {
			t.Fatal(err)
		}
	})
}
