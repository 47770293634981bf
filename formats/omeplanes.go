package formats

import (
	"fmt"
	"strings"

	"github.com/microtome/microtome"
)

// omePlanes is where the planes of an OME image lie: IFD[Planes.Index(c, z, t)]
// is an index into the main chain, or -1 where no TiffData names one.
type omePlanes struct {
	microtome.Planes
	IFD    []int
	placed int // so far, repetitions included
}

// planesOf maps an image's planes to the chain's directories. step gives the
// directory after one when a TiffData spans several: it leaps over
// reduced-resolution directories, which are no planes. samples is how many of
// SizeC's channels one directory holds.
func planesOf(p *omePixels, uuid string, samples, dirs int, step func(int) int, limit int) (omePlanes, error) {
	m := omePlanes{Planes: microtome.Planes{C: p.SizeC, Z: p.SizeZ, T: p.SizeT}}
	if samples > 1 && p.SizeC > 0 {
		m.C = max(1, p.SizeC/samples)
	}
	if m.C < 1 || m.Z < 1 || m.T < 1 {
		return m, fmt.Errorf("OME-XML: SizeC, SizeZ, SizeT = %d, %d, %d: %w", m.C, m.Z, m.T, microtome.ErrCorrupt)
	}
	// In int64, two factors of 31 bits cannot overflow.
	if cz := int64(m.C) * int64(m.Z); cz > int64(limit) || cz*int64(m.T) > int64(limit) {
		return m, fmt.Errorf("OME-XML: more than %d planes: %w", limit, microtome.ErrLimit)
	}
	m.IFD = make([]int, m.C*m.Z*m.T)
	for i := range m.IFD {
		m.IFD[i] = -1
	}
	blocks := p.Blocks
	if len(blocks) == 0 {
		blocks = []omeBlock{{IFD: -1, Planes: -1}}
	}
	for _, b := range blocks {
		if elsewhere(b, uuid, blocks) {
			return m, &microtome.Unsupported{Tag: "OME-XML TiffData FileName", Value: "of another file (planes in other files)"}
		}
		m.place(b, p.Order, dirs, step)
	}
	return m, nil
}

// elsewhere says that a block's planes lie in another file: its UUID is not
// this file's. A file that doesn't name itself is all there is when only one
// UUID is spoken of.
func elsewhere(b omeBlock, uuid string, all []omeBlock) bool {
	if b.UUID == "" && b.File == "" {
		return false
	}
	if uuid != "" && b.UUID != "" {
		return !strings.EqualFold(b.UUID, uuid)
	}
	for _, other := range all {
		if other.UUID != b.UUID || other.File != b.File {
			return true
		}
	}
	return false
}

// place enters one TiffData. Without IFD and PlaneCount it spans all planes;
// with IFD alone, one (OME-TIFF specification, "The TiffData element").
func (m *omePlanes) place(b omeBlock, order string, dirs int, step func(int) int) {
	count := b.Planes
	switch {
	case count < 0 && b.IFD < 0:
		count = min(len(m.IFD), dirs)
	case count < 0:
		count = 1
	}
	at, ok := m.rank(b.FirstC, b.FirstZ, b.FirstT, order)
	if !ok {
		return // outside the image: it names no plane of ours
	}
	ifd := max(b.IFD, 0)
	// Blocks that overlap again and again are hostile: the last ones are lost.
	for ; count > 0 && at < len(m.IFD) && ifd < dirs && m.placed < 16*len(m.IFD); count-- {
		m.placed++
		m.IFD[m.index(at, order)] = ifd
		at++
		ifd = step(ifd)
	}
}

// axes lists the sizes of c, z, t in the order in which they vary, fastest
// first: DimensionOrder without its XY.
func (m *omePlanes) axes(order string) (names string, sizes [3]int) {
	names = strings.TrimPrefix(order, "XY")
	if len(names) != 3 || !strings.Contains(names, "C") || !strings.Contains(names, "Z") || !strings.Contains(names, "T") {
		names = "CZT"
	}
	for i, axis := range names {
		sizes[i] = map[rune]int{'C': m.C, 'Z': m.Z, 'T': m.T}[axis]
	}
	return names, sizes
}

// rank is the place of (c, z, t) in file order.
func (m *omePlanes) rank(c, z, t int, order string) (int, bool) {
	if c >= m.C || z >= m.Z || t >= m.T {
		return 0, false
	}
	names, sizes := m.axes(order)
	rank, scale := 0, 1
	for i, axis := range names {
		rank += scale * map[rune]int{'C': c, 'Z': z, 'T': t}[axis]
		scale *= sizes[i]
	}
	return rank, true
}

// index is the plane index of a place in file order.
func (m *omePlanes) index(rank int, order string) int {
	names, sizes := m.axes(order)
	at := map[rune]int{}
	for i, axis := range names {
		at[axis] = rank % sizes[i]
		rank /= sizes[i]
	}
	return m.Index(at['C'], at['Z'], at['T'])
}
