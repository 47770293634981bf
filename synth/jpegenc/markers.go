package jpegenc

// The markers of T.81 table B.1 that are written.
const (
	markerSOF0  = 0xc0
	markerDHT   = 0xc4
	markerRST0  = 0xd0
	markerSOI   = 0xd8
	markerEOI   = 0xd9
	markerSOS   = 0xda
	markerDQT   = 0xdb
	markerDRI   = 0xdd
	markerAPP0  = 0xe0
	markerAPP14 = 0xee
)

// segment appends a marker, its length and its content.
func segment(dst []byte, marker byte, content ...byte) []byte {
	n := len(content) + 2
	dst = append(dst, 0xff, marker, byte(n>>8), byte(n))
	return append(dst, content...)
}

// Tables is a tables-only stream (T.81 B.5): SOI, DQT, DHT, EOI, as TIFF's
// JPEGTables holds it.
func (e *Encoder) Tables() []byte {
	dst := e.tables([]byte{0xff, markerSOI})
	return append(dst, 0xff, markerEOI)
}

func (e *Encoder) tables(dst []byte) []byte {
	for t := range e.quants {
		p := []byte{byte(t)}
		for _, i := range zigzag {
			p = append(p, e.quants[t][i])
		}
		dst = segment(dst, markerDQT, p...)
	}
	for t := range e.quants {
		for class := range 2 {
			s := &huffSpecs[class][t]
			p := append([]byte{byte(class<<4 | t)}, s.lengths[:]...)
			dst = segment(dst, markerDHT, append(p, s.symbols...)...)
		}
	}
	return dst
}

// head appends everything before the entropy-coded data.
func (e *Encoder) head(dst []byte, w, h int) []byte {
	dst = append(dst, 0xff, markerSOI)
	if e.o.JFIF {
		dst = segment(dst, markerAPP0, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0)
	}
	if e.o.Adobe {
		dst = segment(dst, markerAPP14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, e.o.Transform)
	}
	if !e.o.Abbreviated {
		dst = e.tables(dst)
	}
	sof := []byte{8, byte(h >> 8), byte(h), byte(w >> 8), byte(w), byte(len(e.comps))}
	sos := []byte{byte(len(e.comps))}
	for _, c := range e.comps {
		sof = append(sof, byte(c.id), byte(c.h<<4|c.v), byte(c.table))
		sos = append(sos, byte(c.id), byte(c.table<<4|c.table))
	}
	dst = segment(dst, markerSOF0, sof...)
	if e.o.Restart > 0 {
		dst = segment(dst, markerDRI, byte(e.o.Restart>>8), byte(e.o.Restart))
	}
	return segment(dst, markerSOS, append(sos, 0, 63, 0)...)
}
