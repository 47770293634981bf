package patchwire

import (
	"bytes"
	"encoding/hex"
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

func TestPlanar(t *testing.T) {
	pix := []byte{1, 2, 3, 4, 5, 6, 99, 99, 7, 8, 9, 10, 11, 12} // two rows of two, stride 8
	out := make([]byte, 12)
	Planar(out, pix, 8, 2, 2, 3)
	if want := []byte{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}; !bytes.Equal(out, want) {
		t.Errorf("%v, want %v", out, want)
	}
	grey := make([]byte, 4)
	Planar(grey, []byte{1, 2, 99, 3, 4}, 3, 2, 2, 1)
	if !bytes.Equal(grey, []byte{1, 2, 3, 4}) {
		t.Errorf("%v", grey)
	}
}

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
