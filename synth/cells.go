package synth

import "sync"

// batch is the number of cells that are made before they are written.
const batch = 512

// contentKey names a cell's bytes within one level.
type contentKey struct {
	at      [2]int
	h       int
	channel int
}

// made is a cell's bytes; blank when there is no tissue in it.
type made struct {
	data  []byte
	blank bool
	err   error
}

// cells makes and writes all tiles or strips of a level and returns where they
// lie: 0, 0 for one left out of a sparse slide. plane is the gray plane, or -1.
func (wr *writer) cells(l Level, plane int) (offsets, counts []uint64, err error) {
	g := wr.grid(l)
	n := g.cells()
	offsets, counts = make([]uint64, n), make([]uint64, n)
	known := map[contentKey]made{}
	for start := 0; start < n; start += batch {
		end := min(start+batch, n)
		if !wr.s.Scene.Repeat {
			clear(known)
		}
		wr.make(g, start, end, plane, known)
		for i := start; i < end; i++ {
			c := g.cell(i)
			m := known[wr.key(c, l)]
			if m.err == nil && m.blank && !wr.s.Sparse {
				m.data, m.err = wr.blankCell(c)
			}
			if m.err != nil {
				return nil, nil, m.err
			}
			if len(m.data) > 0 {
				offsets[i], counts[i] = uint64(wr.w.Block(m.data)), uint64(len(m.data))
			}
		}
		if err := wr.w.Err(); err != nil {
			return nil, nil, err
		}
		wr.done += int64(end - start)
		if wr.progress != nil {
			wr.progress(wr.done, wr.total)
		}
	}
	return offsets, counts, nil
}

func (wr *writer) key(c cell, l Level) contentKey {
	return contentKey{wr.scene.Key(c.x, c.y, l.Downsample), c.h, c.channel}
}

// make fills known with the cells of a batch that it lacks, on all processors.
func (wr *writer) make(g grid, start, end, plane int, known map[contentKey]made) {
	var jobs []cell
	for i := start; i < end; i++ {
		c := g.cell(i)
		k := wr.key(c, g.level)
		if _, ok := known[k]; !ok {
			known[k] = made{}
			jobs = append(jobs, c)
		}
	}
	results := make([]made, len(jobs))
	var wg sync.WaitGroup
	for k, e := range wr.encoders {
		wg.Go(func() {
			var pix []byte
			for i := k; i < len(jobs); i += len(wr.encoders) {
				pix, results[i] = wr.makeCell(e, pix, jobs[i], g.level, plane)
			}
		})
	}
	wg.Wait()
	for i, c := range jobs {
		known[wr.key(c, g.level)] = results[i]
	}
}

// makeCell paints and encodes one cell; pix is memory to reuse.
func (wr *writer) makeCell(e *tileEncoder, pix []byte, c cell, l Level, plane int) ([]byte, made) {
	n := c.w * c.h * 3
	if cap(pix) < n {
		pix = make([]byte, n)
	}
	pix = pix[:n]
	if !wr.scene.Paint(pix, c.x, c.y, c.w, c.h, l.Downsample) && plane < 0 {
		return pix, made{blank: true}
	}
	in, channels := pix, 3
	switch {
	case plane >= 0:
		in, channels = wr.gray(pix, plane), 1
	case wr.s.Planar:
		in, channels = pick(pix, c.channel), 1
	}
	data, err := e.encode(in, c.w, c.h, channels)
	return pix, made{data: data, err: err}
}

// blankCell is the bytes of a cell without tissue, made once per size.
func (wr *writer) blankCell(c cell) ([]byte, error) {
	key := [2]int{c.w<<2 | c.channel, c.h}
	if p, ok := wr.blank[key]; ok {
		return p, nil
	}
	pix := backgroundPixels(c.w * c.h)
	channels := 3
	if wr.s.Planar {
		pix, channels = pick(pix, c.channel), 1
	}
	p, err := wr.encoders[0].encode(pix, c.w, c.h, channels)
	wr.blank[key] = p
	return p, err
}

// pick is one channel of RGB pixels.
func pick(rgb []byte, channel int) []byte {
	out := make([]byte, len(rgb)/3)
	for i := range out {
		out[i] = rgb[3*i+channel]
	}
	return out
}

// gray is a fluorescence-like plane: the channels of an OME-TIFF light up where
// red, green or blue is absorbed, dimmer from z to z and t to t.
func (wr *writer) gray(rgb []byte, plane int) []byte {
	sizeC, sizeZ := max(wr.s.SizeC, 1), max(wr.s.SizeZ, 1)
	c, z, t := plane%sizeC, plane/sizeC%sizeZ, plane/sizeC/sizeZ
	gain := 256 * 8 / (8 + z + 2*t + c/3)
	out := pick(rgb, c%3)
	for i, v := range out {
		out[i] = uint8(min((255-int(v))*gain>>8+4*c, 255))
	}
	return out
}
