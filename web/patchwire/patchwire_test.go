package patchwire

import (
	"bytes"
	"encoding/hex"
	"io"
	"strings"
	"testing"
)

func TestRawHeader(t *testing.T) {
	s := Shape{N: 2, Height: 3, Width: 5, Channels: 3, Planar: true, Fill: 7}
	statuses := []Status{{Code: 200, Made: 2, Hit: true, Level: 1}, {Code: 422, Made: NotMade}}
	b := AppendStatuses(AppendHead(nil, s, Failed(statuses), false), statuses)
	const want = "4d54504154434831" + "40000000" + "02000000" + "03000000" + "05000000" + "03000000" + "00010700" + "01000000" + "00000000" +
		"4000000000000000" + "5000000000000000" + "5a00000000000000" +
		"c800020101000000" + "a601ff0000000000"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	const last = "4d54504154434831" + "40000000" + "02000000" + "03000000" + "05000000" + "03000000" + "00010700" + "ffffffff" + "00000000" +
		"9a00000000000000" + "4000000000000000" + "5a00000000000000"
	if got := hex.EncodeToString(AppendHead(nil, s, -1, true)); got != last {
		t.Errorf("%s\nwant %s", got, last)
	}
	if s.RawBytes() != int64(len(b))+90 {
		t.Errorf("%d bytes in all", s.RawBytes())
	}
}

func TestNPYHeader(t *testing.T) {
	for planar, shape := range map[bool]string{false: "(64, 256, 128, 3)", true: "(64, 3, 256, 128)"} {
		b := AppendNPY(nil, Shape{N: 64, Height: 256, Width: 128, Channels: 3, Planar: planar})
		if len(b)%64 != 0 || !bytes.HasPrefix(b, []byte("\x93NUMPY\x01\x00")) || b[len(b)-1] != '\n' ||
			int(b[8])+int(b[9])<<8 != len(b)-10 || !strings.Contains(string(b), "'shape': "+shape) {
			t.Errorf("%q", b)
		}
	}
}

// TestWriteItem: both layouts, padded rows, and buffers that end anywhere.
func TestWriteItem(t *testing.T) {
	for _, c := range []struct {
		channels, stride int
		planar           bool
		pix, want        []byte
	}{
		{3, 6, false, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{3, 8, false, []byte{1, 2, 3, 4, 5, 6, 99, 99, 7, 8, 9, 10, 11, 12}, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{3, 6, true, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, []byte{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}},
		{3, 8, true, []byte{1, 2, 3, 4, 5, 6, 99, 99, 7, 8, 9, 10, 11, 12}, []byte{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}},
		{1, 2, true, []byte{1, 2, 3, 4, 99}, []byte{1, 2, 3, 4}},
		{1, 3, true, []byte{1, 2, 99, 3, 4}, []byte{1, 2, 3, 4}},
		{1, 3, false, []byte{1, 2, 99, 3, 4}, []byte{1, 2, 3, 4}},
	} {
		s := Shape{N: 1, Height: 2, Width: 2, Channels: c.channels, Planar: c.planar}
		for n := 1; n <= 13; n++ {
			var b bytes.Buffer
			if err := WriteItem(&b, make([]byte, n), c.pix, c.stride, s); err != nil || !bytes.Equal(b.Bytes(), c.want) {
				t.Errorf("%+v, buffer of %d: %v, %v", c, n, b.Bytes(), err)
			}
			if err := WriteItem(full{}, make([]byte, n), c.pix, c.stride, s); err != io.ErrShortWrite {
				t.Errorf("%+v, buffer of %d: %v", c, n, err)
			}
		}
	}
}

func TestWriteFill(t *testing.T) {
	s := Shape{N: 1, Height: 2, Width: 2, Channels: 3, Fill: 7}
	for n := 1; n <= 13; n++ {
		var b bytes.Buffer
		if err := WriteFill(&b, make([]byte, n), s); err != nil || !bytes.Equal(b.Bytes(), bytes.Repeat([]byte{7}, 12)) {
			t.Errorf("buffer of %d: %v, %v", n, b.Bytes(), err)
		}
		if err := WriteFill(full{}, make([]byte, n), s); err != io.ErrShortWrite {
			t.Errorf("buffer of %d: %v", n, err)
		}
	}
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestFailures(t *testing.T) {
	st := []Status{{Code: 200}, {Code: 422}, {Code: 200}, {Code: 404}}
	if got := Failures(st, 1000); got != "1:422, 3:404" || Failed(st) != 2 {
		t.Error(got, Failed(st))
	}
	many := make([]Status, 5000)
	if got := Failures(many, 1000); len(got) > 1000 || !strings.HasSuffix(got, "...") {
		t.Errorf("%d bytes: %s", len(got), got[len(got)-20:])
	}
}
