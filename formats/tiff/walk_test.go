package tiff_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/formats/tiff"
	"github.com/microtome/microtome/synth/tiffw"
)

// TestValues reads every kind of value in every kind of file.
func TestValues(t *testing.T) {
	for _, form := range forms() {
		t.Run(form.name, func(t *testing.T) {
			d := parse(t, write(t, form.o, func(w *tiffw.Writer) {
				w.Dir(new(tiffw.Dir).Short(256, 700).Long(257, 1<<31).Short(258, 8, 9, 10, 11, 12).
					ASCII(270, "a longer text").ASCII(271, "ab").Rational(282, 1, 3).Float(283, 0.5).
					Double(286, -2.5).Bytes(700, 1, 2, 3).Raw(33000, tiffw.SShort, 1, []byte{0xFE, 0xFE}))
			})).Dirs[0]
			checkValues(t, d)
		})
	}
}

func checkValues(t *testing.T, d *tiff.Dir) {
	t.Helper()
	for tag, want := range map[uint16]uint64{256: 700, 257: 1 << 31, 258: 8} {
		if v, ok, err := d.Uint(tag); v != want || !ok || err != nil {
			t.Errorf("tag %d: %d %v %v", tag, v, ok, err)
		}
	}
	if v, err := d.Uints(258, 5); fmt.Sprint(v) != "[8 9 10 11 12]" || err != nil {
		t.Errorf("%v %v", v, err)
	}
	if _, err := d.Uints(258, 4); !errors.Is(err, microtome.ErrLimit) {
		t.Errorf("five of four values: %v", err)
	}
	for tag, want := range map[uint16]string{270: "a longer text", 271: "ab"} {
		if s, ok, err := d.ASCII(tag); s != want || !ok || err != nil {
			t.Errorf("tag %d: %q %v %v", tag, s, ok, err)
		}
	}
	if n, m, ok, err := d.Rational(282); n != 1 || m != 3 || !ok || err != nil {
		t.Errorf("%d/%d %v %v", n, m, ok, err)
	}
	for tag, want := range map[uint16]float64{256: 700, 283: 0.5, 286: -2.5, 33000: -258} {
		if v, ok, err := d.Float(tag); v != want || !ok || err != nil {
			t.Errorf("tag %d: %v %v %v", tag, v, ok, err)
		}
	}
	if p, err := d.Bytes(700); fmt.Sprint(p) != "[1 2 3]" || err != nil {
		t.Errorf("%v %v", p, err)
	}
	if _, _, err := d.Uint(33000); !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("negative: %v", err)
	}
	if _, _, err := d.Uint(270); !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("text as number: %v", err)
	}
	if _, ok, err := d.Uint(999); ok || err != nil || d.Has(999) || d.Count(999) != 0 {
		t.Errorf("absent: %v %v", ok, err)
	}
}

// TestA1Loops: chains and SubIFDs that loop are read once each.
func TestA1Loops(t *testing.T) {
	simple := func() *tiffw.Dir { return new(tiffw.Dir).Short(256, 1).Short(257, 1) }
	self := simple()
	self.Next = tiffw.U(8)
	for name, c := range map[string]struct {
		build func(w *tiffw.Writer)
		dirs  int
	}{
		"self": {func(w *tiffw.Writer) { w.Dir(self) }, 1},
		"A B A": {func(w *tiffw.Writer) {
			a := w.Dir(simple())
			b := simple()
			b.Next = tiffw.U(uint64(a.Offset))
			w.Dir(b)
		}, 2},
		"SubIFD to its parent": {func(w *tiffw.Writer) { w.Dir(simple().Long(330, 8)) }, 1},
		"SubIFD to a sibling": {func(w *tiffw.Writer) {
			a := w.Dir(simple())
			w.Dir(simple().Long(330, uint32(a.Offset)))
		}, 2},
	} {
		f := parse(t, write(t, tiffw.Options{}, c.build))
		if len(f.Dirs) != c.dirs || len(f.Warnings) != 1 || len(f.Dirs[0].SubDirs) != 0 {
			t.Errorf("%s: %d directories, warnings %q", name, len(f.Dirs), f.Warnings)
		}
	}
	bare := []byte("II*\x00\x08\x00\x00\x00\x00\x00\x08\x00\x00\x00")
	if _, err := tiff.Parse(context.Background(), memory(bare), tiff.Limits{}); len(bare) != 14 || !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("14 bytes: %v", err)
	}
}

// TestA2Counts: counts are checked before anything is allocated for them.
func TestA2Counts(t *testing.T) {
	many := new(tiffw.Dir).Short(256, 1)
	many.EntryCount = tiffw.U(65535)
	_, err := tiff.Parse(context.Background(), memory(write(t, tiffw.Options{}, func(w *tiffw.Writer) { w.Dir(many) })), tiff.Limits{})
	if !errors.Is(err, microtome.ErrCorrupt) {
		t.Errorf("65535 entries: %v", err)
	}
	for _, form := range forms() {
		for _, count := range []uint64{0xFFFFFFFF, 1 << 60, 1<<64 - 1} {
			src := memory(write(t, form.o, func(w *tiffw.Writer) {
				w.Dir(new(tiffw.Dir).Short(256, 1).At(330, tiffw.Long, count, 8).At(700, tiffw.Byte, count, 8).At(34675, tiffw.Double, count, 8))
			}))
			f, err := tiff.Parse(context.Background(), src, tiff.Limits{})
			if err != nil || f.Dirs[0].Has(700) || f.Dirs[0].Has(330) || len(f.Warnings) != 3 || src.bytes.Load() > 4096 {
				t.Errorf("%s: %v, read %d bytes", form.name, err, src.bytes.Load())
			}
		}
	}
}

// TestA3NextBefore: the next directory may lie before the first.
func TestA3NextBefore(t *testing.T) {
	for _, form := range forms() {
		f := parse(t, write(t, form.o, func(w *tiffw.Writer) {
			second := w.SubDir(new(tiffw.Dir).Short(256, 20).Short(257, 20).ASCII(270, "the second of two"))
			first := new(tiffw.Dir).Short(256, 10).Short(257, 10).ASCII(270, "the first of the two")
			first.Next = tiffw.U(uint64(second.Offset))
			w.Dir(first)
		}))
		if len(f.Dirs) != 2 || f.Dirs[1].Offset >= f.Dirs[0].Offset {
			t.Fatalf("%s: %d directories", form.name, len(f.Dirs))
		}
		for i, want := range []string{"the first of the two", "the second of two"} {
			if s, _, err := f.Dirs[i].ASCII(270); s != want || err != nil {
				t.Errorf("%s: %q %v", form.name, s, err)
			}
		}
	}
}

// TestA16Order: entries out of order are found, and told of.
func TestA16Order(t *testing.T) {
	d := new(tiffw.Dir).Short(277, 3).Short(256, 40).ASCII(270, "described").Short(257, 30).Short(256, 99)
	d.Unsorted = true
	f := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) { w.Dir(d) }))
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "order") {
		t.Errorf("warnings %q", f.Warnings)
	}
	for tag, want := range map[uint16]uint64{256: 40, 257: 30, 277: 3} { // of equal tags the first
		if v, _, err := f.Dirs[0].Uint(tag); v != want || err != nil {
			t.Errorf("tag %d: %d %v", tag, v, err)
		}
	}
}

// TestB1SubIFDs: tag 330 as LONG, IFD, LONG8 and IFD8, with offsets above 4 GB.
func TestB1SubIFDs(t *testing.T) {
	const far = 5 << 30
	// A directory of inline values is the same wherever it lies.
	sub := write(t, tiffw.Options{Big: true}, func(w *tiffw.Writer) {
		w.Dir(new(tiffw.Dir).Short(256, 7).Short(257, 5))
	})[16:]
	for _, typ := range []tiffw.Type{tiffw.Long8, tiffw.IFD8} {
		for _, n := range []int{1, 2} {
			var offsets []byte
			src := &parts{size: far + 1<<20, at: map[int64][]byte{}}
			for i := range n {
				at := far + int64(i)<<12
				offsets = binary.LittleEndian.AppendUint64(offsets, uint64(at))
				src.at[at] = sub
			}
			src.at[0] = write(t, tiffw.Options{Big: true}, func(w *tiffw.Writer) {
				w.Dir(new(tiffw.Dir).Short(256, 14).Short(257, 10).Raw(330, typ, uint64(n), offsets))
			})
			f, err := tiff.Parse(context.Background(), src, tiff.Limits{})
			if err != nil || len(f.Dirs[0].SubDirs) != n {
				t.Fatalf("type %d, %d: %v %+v", typ, n, err, f)
			}
			last := f.Dirs[0].SubDirs[n-1]
			if w, _, _ := last.Uint(256); w != 7 || last.Offset != far+int64(n-1)<<12 || last.Name() != fmt.Sprintf("ifd 0 sub %d", n-1) {
				t.Errorf("type %d: width %d at %d, %s", typ, w, last.Offset, last.Name())
			}
			if src.reads.Load() > 6 {
				t.Errorf("%d reads", src.reads.Load())
			}
		}
	}
	for _, typ := range []tiffw.Type{tiffw.Long, tiffw.IFD} {
		f := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) {
			at := w.SubDir(new(tiffw.Dir).Short(256, 7).Short(257, 5)).Offset
			w.Dir(new(tiffw.Dir).Short(256, 14).Raw(330, typ, 1, w.Word(uint64(at))))
		}))
		if len(f.Dirs[0].SubDirs) != 1 {
			t.Errorf("type %d: %d SubIFDs, %q", typ, len(f.Dirs[0].SubDirs), f.Warnings)
		}
	}
}

// TestLimits: directories, depth and bytes are bounded.
func TestLimits(t *testing.T) {
	chain := write(t, tiffw.Options{}, func(w *tiffw.Writer) {
		for range 1001 {
			w.Dir(new(tiffw.Dir).Short(256, 1))
		}
	})
	deep := write(t, tiffw.Options{}, func(w *tiffw.Writer) {
		at := w.SubDir(new(tiffw.Dir).Short(256, 1)).Offset
		for range 6 {
			at = w.SubDir(new(tiffw.Dir).Short(256, 1).Long(330, uint32(at))).Offset
		}
		w.Dir(new(tiffw.Dir).Short(256, 1).Long(330, uint32(at)))
	})
	if _, err := tiff.Parse(context.Background(), memory(chain), tiff.Limits{}); !errors.Is(err, microtome.ErrLimit) {
		t.Errorf("1001 directories: %v", err)
	}
	if f, err := tiff.Parse(context.Background(), memory(chain), tiff.Limits{Dirs: 1001}); err != nil || len(f.Dirs) != 1001 {
		t.Errorf("1001 directories allowed: %v", err)
	}
	if _, err := tiff.Parse(context.Background(), memory(chain), tiff.Limits{OpenBytes: 1 << 12}); !errors.Is(err, microtome.ErrLimit) {
		t.Errorf("bytes at open: %v", err)
	}
	depth := 0
	for d := parse(t, deep).Dirs[0]; len(d.SubDirs) > 0; d = d.SubDirs[0] {
		depth++
	}
	if depth != 4 {
		t.Errorf("SubIFDs %d deep", depth)
	}
	big := parse(t, write(t, tiffw.Options{}, func(w *tiffw.Writer) {
		w.Dir(new(tiffw.Dir).Short(256, 1).Undefined(34675, make([]byte, 16<<20+1)))
	})).Dirs[0]
	if _, err := big.Bytes(34675); !errors.Is(err, microtome.ErrLimit) || big.Count(34675) != 16<<20+1 {
		t.Errorf("16 MB and 1: %v", err)
	}
}

// TestBrokenTail: what is broken behind the first directory costs only itself,
// unless it is the source that fails.
func TestBrokenTail(t *testing.T) {
	first := new(tiffw.Dir).Short(256, 1)
	first.Next = tiffw.U(1 << 20)
	p := write(t, tiffw.Options{}, func(w *tiffw.Writer) { w.Dir(first) })
	if f := parse(t, p); len(f.Dirs) != 1 || len(f.Warnings) != 1 {
		t.Errorf("%d directories, %q", len(f.Dirs), f.Warnings)
	}
	cut := write(t, tiffw.Options{}, func(w *tiffw.Writer) { w.Dir(new(tiffw.Dir).Short(256, 1)) })
	if f := parse(t, cut[:len(cut)-4]); len(f.Dirs) != 1 || len(f.Warnings) != 1 {
		t.Errorf("no next offset: %d directories, %q", len(f.Dirs), f.Warnings)
	}
	src := memory(p)
	src.failed = true
	if _, err := tiff.Parse(context.Background(), src, tiff.Limits{}); !errors.Is(err, microtome.ErrSource) {
		t.Errorf("source fails: %v", err)
	}
	for _, bad := range []string{"", "II", "II*\x00\x00\x00\x00\x00", "II*\x00\x99\x00\x00\x00", "XX*\x00\x08\x00\x00\x00", "II+\x00\x04\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00"} {
		if _, err := tiff.Parse(context.Background(), memory([]byte(bad)), tiff.Limits{}); !errors.Is(err, microtome.ErrCorrupt) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
