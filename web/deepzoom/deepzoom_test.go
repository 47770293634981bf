package deepzoom

import (
	"encoding/xml"
	"errors"
	"image"
	"math/bits"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/web/route"
)

func TestParsePath(t *testing.T) {
	for _, c := range []struct {
		path string
		want Path
		kind error
	}{
		{path: "a.svs.dzi", want: Path{ID: "a.svs", Descriptor: true}},
		{path: "a.dzi.dzi", want: Path{ID: "a.dzi", Descriptor: true}},
		{path: "dir%2Fsub.svs.dzi", want: Path{ID: "dir/sub.svs", Descriptor: true}},
		{path: "dir/sub.svs_files/3/1_2.jpg", want: Path{ID: "dir/sub.svs", Level: 3, Col: 1, Row: 2, Format: "jpeg"}},
		{path: "123/4.svs_files/0/0_0.jpeg", want: Path{ID: "123/4.svs", Format: "jpeg"}},
		{path: "x_files.svs_files/0/0_0.png", want: Path{ID: "x_files.svs", Format: "png"}},
		{path: "x_files/0/0_0.png_files/1/0_0.webp", want: Path{ID: "x_files/0/0_0.png", Level: 1, Format: "webp"}},
		{path: "a%2520b.svs_files/0/0_0.png", want: Path{ID: "a%20b.svs", Format: "png"}},
		{path: "a+b.svs_files/0/0_0.png", want: Path{ID: "a+b.svs", Format: "png"}},
		{path: "a_files/0/0_0.gif", kind: microtome.ErrUnsupported},
		{path: "a_files/0/0_0", kind: microtome.ErrMalformed},
		{path: "a_files/0/0.jpg", kind: microtome.ErrMalformed},
		{path: "a_files/x/0_0.jpg", kind: microtome.ErrMalformed},
		{path: "a_files/0/1.5_0.jpg", kind: microtome.ErrMalformed},
		{path: "a_files/0/x_0.jpg", kind: microtome.ErrMalformed},
		{path: "a_files/-1/0_0.jpg", kind: microtome.ErrNotFound},
		{path: "a_files/0/-1_0.jpg", kind: microtome.ErrNotFound},
		{path: "a_files/0/0_-7.jpg", kind: microtome.ErrNotFound},
		{path: "a_files/0/99999999999999999999_0.jpg", kind: microtome.ErrNotFound},
		{path: "../a_files/0/0_0.jpg", kind: microtome.ErrNotFound},
		{path: "%2e%2e%2fa.dzi", kind: microtome.ErrNotFound},
		{path: ".dzi", kind: microtome.ErrNotFound},
		{path: "_files/0/0_0.jpg", kind: microtome.ErrNotFound},
		{path: "a/0/0_0.jpg", kind: microtome.ErrNotFound},
		{path: "a", kind: microtome.ErrNotFound}, {path: "", kind: microtome.ErrNotFound}, {path: "a/b", kind: microtome.ErrNotFound},
	} {
		got, err := ParsePath(c.path)
		if c.kind != nil {
			if !errors.Is(err, c.kind) {
				t.Errorf("ParsePath(%q) = %+v, %v; want %v", c.path, got, err, c.kind)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("ParsePath(%q) = %+v, %v; want %+v", c.path, got, err, c.want)
		}
	}
}

// Trap F1: the last row is one pixel beyond the grid of tiles, and exists.
func TestF1LastRowOfOnePixel(t *testing.T) {
	p := Pyramid{Width: 4875, Height: 4071, Tile: 254, Overlap: 1}
	const level = 9
	if zw, zh := p.Size(level); zw != 305 || zh != 255 {
		t.Fatalf("level 9 is %dx%d", zw, zh)
	}
	if cols, rows := p.Grid(level); cols != 2 || rows != 2 {
		t.Fatalf("grid %dx%d, want 2x2", cols, rows)
	}
	for _, c := range []struct {
		col, row int
		want     image.Rectangle
	}{
		{0, 0, image.Rect(0, 0, 255, 255)}, {1, 0, image.Rect(253, 0, 305, 255)},
		{0, 1, image.Rect(0, 253, 255, 255)}, {1, 1, image.Rect(253, 253, 305, 255)},
	} {
		if got, err := p.Cell(level, c.col, c.row); err != nil || got.Rect != c.want {
			t.Errorf("tile %d,%d: %v, %v; want %v", c.col, c.row, got.Rect, err, c.want)
		}
	}
}

// Trap F2: level count and sizes by repeated ceil, down to 1x1.
func TestF2Levels(t *testing.T) {
	for _, c := range []struct {
		w, h int64
		max  int
	}{
		{1, 1, 0}, {2, 1, 1}, {1, 2, 1}, {256, 256, 8}, {257, 1, 9}, {1024, 1024, 10}, {1025, 3, 11},
		{46000, 32914, 16}, {1 << 40, 5, 40}, {1<<40 + 1, 5, 41},
	} {
		p := Pyramid{Width: c.w, Height: c.h, Tile: 256}
		if p.MaxLevel() != c.max || p.Levels() != c.max+1 {
			t.Errorf("%dx%d: max level %d, want %d", c.w, c.h, p.MaxLevel(), c.max)
		}
		zw, zh := c.w, c.h
		for l := p.MaxLevel(); l >= 0; l-- {
			if gw, gh := p.Size(l); gw != zw || gh != zh {
				t.Errorf("%dx%d: level %d is %dx%d, want %dx%d", c.w, c.h, l, gw, gh, zw, zh)
			}
			zw, zh = (zw+1)/2, (zh+1)/2
		}
		if gw, gh := p.Size(0); gw != 1 || gh != 1 {
			t.Errorf("%dx%d: level 0 is %dx%d", c.w, c.h, gw, gh)
		}
	}
}

// Trap F3: sizes of corner, edge and inner tiles.
func TestF3OverlapSizes(t *testing.T) {
	for _, c := range []struct {
		tile, overlap, col, row, w, h int
	}{
		{256, 1, 0, 0, 257, 257}, {256, 1, 1, 0, 258, 257}, {256, 1, 0, 1, 257, 258}, {256, 1, 1, 1, 258, 258},
		{256, 1, 3, 3, 257, 257}, {256, 1, 3, 1, 257, 258},
		{254, 1, 0, 0, 255, 255}, {254, 1, 1, 1, 256, 256}, {254, 1, 4, 0, 9, 255},
		{256, 0, 3, 3, 256, 256}, {100, 200, 0, 0, 300, 300}, {100, 200, 5, 5, 500, 500},
	} {
		p := Pyramid{Width: 1024, Height: 1024, Tile: c.tile, Overlap: c.overlap}
		got, err := p.Cell(10, c.col, c.row)
		if err != nil || got.Rect.Dx() != c.w || got.Rect.Dy() != c.h {
			t.Errorf("tile=%d overlap=%d at %d,%d: %v, %v; want %dx%d", c.tile, c.overlap, c.col, c.row, got.Rect, err, c.w, c.h)
		}
	}
}

// Trap F4: outside is ErrNotFound.
func TestF4Outside(t *testing.T) {
	p := Pyramid{Width: 1000, Height: 700, Tile: 254, Overlap: 1}
	for _, c := range [][3]int{{10, 4, 0}, {10, 0, 3}, {10, -1, 0}, {10, 0, -1}, {-1, 0, 0}, {11, 0, 0}, {0, 1, 0}, {1 << 30, 0, 0}} {
		if got, err := p.Cell(c[0], c[1], c[2]); !errors.Is(err, microtome.ErrNotFound) {
			t.Errorf("%v: %+v, %v", c, got, err)
		}
	}
}

// Trap G3's other half: every tile that a viewer computes by ceil exists, and
// the tiles without their overlap cover a level exactly once.
func TestGridCoversLevel(t *testing.T) {
	for _, p := range []Pyramid{
		{Width: 11558, Height: 11081, Tile: 256}, {Width: 4875, Height: 4071, Tile: 254, Overlap: 1}, {Width: 1, Height: 9, Tile: 4, Overlap: 7},
	} {
		for l := 0; l <= p.MaxLevel(); l++ {
			cols, rows := p.Grid(l)
			zw, zh := p.Size(l)
			var area int64
			for row := range int(rows) {
				for col := range int(cols) {
					c, err := p.Cell(l, col, row)
					if err != nil {
						t.Fatal(err)
					}
					x0, y0 := max(col*p.Tile, 0), max(row*p.Tile, 0)
					inner := image.Rect(x0, y0, min(x0+p.Tile, int(zw)), min(y0+p.Tile, int(zh)))
					if !inner.In(c.Rect) || inner.Empty() {
						t.Fatalf("level %d tile %d,%d: %v does not hold %v", l, col, row, c.Rect, inner)
					}
					area += int64(inner.Dx()) * int64(inner.Dy())
				}
			}
			if area != zw*zh {
				t.Errorf("level %d: tiles cover %d of %d", l, area, zw*zh)
			}
		}
	}
}

func TestDZI(t *testing.T) {
	var got struct {
		XMLName  xml.Name `xml:"http://schemas.microsoft.com/deepzoom/2008 Image"`
		Format   string   `xml:",attr"`
		Overlap  int      `xml:",attr"`
		TileSize int      `xml:",attr"`
		Size     struct {
			Width  int64 `xml:",attr"`
			Height int64 `xml:",attr"`
		}
	}
	b := DZI(Pyramid{Width: 46000, Height: 32914, Tile: 254, Overlap: 1}, "jpeg")
	if err := xml.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Format != "jpeg" || got.Overlap != 1 || got.TileSize != 254 || got.Size.Width != 46000 || got.Size.Height != 32914 {
		t.Errorf("%s reads as %+v", b, got)
	}
}

func TestDefault(t *testing.T) {
	for _, c := range []struct{ tw, th, want int }{
		{240, 240, 240}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {46000, 16, 256}, {240, 256, 256}, {16, 16, 256}, {4096, 4096, 256},
	} {
		if tile, overlap := Default(microtome.Grid{TileWidth: c.tw, TileHeight: c.th}); tile != c.want || overlap != 0 {
			t.Errorf("%dx%d: tile %d overlap %d", c.tw, c.th, tile, overlap)
		}
	}
}

func TestParam(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       int
		kind       error
	}{
		{"tile", "254", 254, nil}, {"overlap", "0", 0, nil}, {"tile", "0", 0, microtome.ErrMalformed}, {"tile", "-1", 0, microtome.ErrMalformed},
		{"tile", "x", 0, microtome.ErrMalformed}, {"overlap", "", 0, microtome.ErrMalformed}, {"tile", "4294967295", 0, microtome.ErrLimit},
		{"tile", "99999999999999999999", 0, microtome.ErrMalformed},
	} {
		if got, err := Param(c.key, c.value); got != c.want || !errors.Is(err, c.kind) {
			t.Errorf("Param(%s, %q) = %d, %v", c.key, c.value, got, err)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("a.svs.dzi")
	f.Add("dir/x_files.svs_files/12/3_4.jpeg")
	f.Add("%2e%2e%2f_files/0/-1_0.png")
	f.Fuzz(func(t *testing.T, path string) {
		p, err := ParsePath(path)
		if err != nil {
			return
		}
		if id, err := route.ID(route.EscapeID(p.ID)); err != nil || id != p.ID {
			t.Fatalf("%q: id %q reads back as %q, %v", path, p.ID, id, err)
		}
		if p.Level < 0 || p.Col < 0 || p.Row < 0 || !p.Descriptor && p.Format == "" {
			t.Fatalf("%q: %+v", path, p)
		}
	})
}

func FuzzPyramid(f *testing.F) {
	f.Add(int64(4875), int64(4071), 254, 1, 9, 1, 1)
	f.Add(int64(1), int64(1), 1, 0, 0, 0, 0)
	f.Fuzz(func(t *testing.T, w, h int64, tile, overlap, level, col, row int) {
		const most = 1 << 45
		if w < 1 || h < 1 || w > most || h > most || tile < 1 || tile > maxTileParam || overlap < 0 || overlap > maxTileParam {
			return
		}
		p := Pyramid{w, h, tile, overlap}
		if p.MaxLevel() != bits.Len64(uint64(max(w, h)-1)) {
			t.Fatal("max level")
		}
		c, err := p.Cell(level, col, row)
		if err != nil {
			return
		}
		if c.Rect.Empty() || !c.Rect.In(image.Rect(0, 0, int(c.Width), int(c.Height))) {
			t.Fatalf("%+v: cell %+v", p, c)
		}
	})
}
