package tiles

import "github.com/microtome/microtome"

// held keeps one row of tiles from a request's band to its next. The caches
// refuse tiles that are large; without held each band would decode them again.
type held struct {
	row   int
	tiles map[int]microtome.Pixels // by column
}

// maxHeld bounds a row of several tiles, in bytes. A single tile is held
// whatever its size: it was in memory anyway.
const maxHeld = 256 << 20

// holds returns what keeps tiles between the bands of a request, nil when
// there is one band only or the cache keeps them.
func (q *request) holds() *held {
	src := q.source(0, q.h)
	if src.Empty() || area(src) <= bandPixels {
		return nil
	}
	g := &q.p.grid
	tile := min(int64(g.TileWidth), g.Width) * min(int64(g.TileHeight), g.Height) * int64(q.p.channels())
	if c := q.access.cache; c != nil && tile <= c.Largest() {
		return nil
	}
	n := int64((src.Max.X-1)/g.TileWidth - src.Min.X/g.TileWidth + 1)
	if n > 1 && tile > maxHeld/n {
		return nil
	}
	return &held{tiles: map[int]microtome.Pixels{}}
}

// get returns a tile with a reference of its own, nil when it is not held. h
// may be nil.
func (h *held) get(col, row int) microtome.Pixels {
	if h == nil || h.row != row {
		return nil
	}
	px := h.tiles[col]
	if px != nil {
		px.Retain()
	}
	return px
}

// put holds a tile instead of those of other rows. h may be nil.
func (h *held) put(col, row int, px microtome.Pixels) {
	if h == nil {
		return
	}
	if h.row != row {
		h.drop()
		h.row = row
	}
	if h.tiles[col] == nil {
		px.Retain()
		h.tiles[col] = px
	}
}

// drop gives all tiles back. h may be nil.
func (h *held) drop() {
	if h == nil {
		return
	}
	for _, px := range h.tiles {
		px.Release()
	}
	clear(h.tiles)
}
