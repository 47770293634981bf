package jpegstream

// eachQuant walks the tables of a DQT segment (T.81 B.2.4.1). A table is given
// whole, with its first byte.
func eachQuant(b []byte, visit func(id uint8, table []byte)) error {
	for len(b) > 0 {
		precision, id := b[0]>>4, b[0]&15
		n := 1 + 64*(1+int(precision))
		if precision > 1 || id > 3 || n > len(b) {
			return corrupt("DQT: table %d of precision %d in %d bytes", id, precision, len(b))
		}
		visit(id, b[:n:n])
		b = b[n:]
	}
	return nil
}

// eachHuffman walks the tables of a DHT segment (T.81 B.2.4.2) in the same way;
// class 0 is DC, 1 AC.
func eachHuffman(b []byte, visit func(class, id uint8, table []byte)) error {
	for len(b) > 0 {
		if len(b) < 17 {
			return corrupt("DHT of %d bytes", len(b))
		}
		class, id, n, codes := b[0]>>4, b[0]&15, 17, 0
		for i, count := range b[1:17] {
			n += int(count)
			// Codes of this length must fit beside the shorter ones.
			if codes = codes<<1 + int(count); codes > 1<<(i+1) {
				return corrupt("DHT: too many codes of %d bits", i+1)
			}
		}
		if class > 1 || id > 3 || n > 17+256 || n > len(b) {
			return corrupt("DHT: table %d of class %d, %d bytes", id, class, n)
		}
		visit(class, id, b[:n:n])
		b = b[n:]
	}
	return nil
}

// Tables are the quantization and Huffman tables of an abbreviated
// table-specification stream (T.81 B.5; TIFF tag 347, TechNote 2). The zero
// value is none.
type Tables struct {
	segments      []byte
	quant, dc, ac uint8 // which they define, as in Header
}

// ParseTables takes DQT and DHT out of a tables stream. All else in it means
// nothing to the streams that use the tables: SOI resets it. A missing EOI is
// forgiven.
func ParseTables(p []byte) (Tables, error) {
	var t Tables
	var defined Header
	if len(p) < 2 || p[0] != 0xFF || p[1] != markerSOI {
		return t, corrupt("tables of %d bytes without SOI in front", len(p))
	}
	for at := 2; at < len(p); {
		s, err := readSegment(p, at)
		if err != nil {
			return Tables{}, err
		}
		if s.marker == markerEOI || s.marker == markerSOS {
			break
		}
		if s.marker == markerDQT || s.marker == markerDHT {
			if err := defined.add(s); err != nil {
				return Tables{}, err
			}
			t.segments = append(t.segments, p[s.start:s.end]...)
		}
		at = s.end
	}
	t.quant, t.dc, t.ac = defined.QuantTables, defined.DCTables, defined.ACTables
	return t, nil
}

// Room is how many bytes Complete needs in front of a stream.
func (t Tables) Room() int { return markerBytes + len(t.segments) }

// Splice completes an abbreviated stream with the tables of another. Tables of
// its own stay and win. An empty tables adds nothing.
func Splice(tables, stream []byte) ([]byte, error) {
	var t Tables
	var err error
	if len(tables) > 0 {
		if t, err = ParseTables(tables); err != nil {
			return nil, err
		}
	}
	p, _, err := t.Complete(roomBefore(t, stream), AsIs)
	return p, err
}

func roomBefore(t Tables, stream []byte) []byte {
	buf := make([]byte, t.Room()+len(stream), t.Room()+len(stream)+2)
	copy(buf[t.Room():], stream)
	return buf
}

// Complete makes buf[t.Room():] a stream that is playable by itself: tables in
// front, color's markers, EOI added where it is missing, bytes behind it
// dropped. The answer lies in buf (which is overwritten, and grows by two bytes
// at most) and its header describes it.
func (t Tables) Complete(buf []byte, color Color) ([]byte, Header, error) {
	p := buf[t.Room():]
	h, err := Parse(p)
	if err != nil {
		return nil, h, err
	}
	start := t.Room()
	marker, drop := color.markers(h)
	if drop {
		n := dropColor(p, h)
		start += n
		if h, err = Parse(p[n:]); err != nil {
			return nil, h, err
		}
	}
	end := start + h.End
	start += 2 // the stream's SOI; a new one goes in front
	start -= copy(buf[start-len(t.segments):], t.segments)
	if marker != nil {
		start -= copy(buf[start-len(marker):], marker)
	}
	start -= 2
	buf[start], buf[start+1] = 0xFF, markerSOI
	out := buf[start:end]
	h.completed(t, marker, end-start-h.End)
	if !h.EOI {
		out = append(out, 0xFF, markerEOI)
		h.End, h.EOI = len(out), true
	}
	return out, h, nil
}

// completed is what Parse would say after Complete has put that many bytes in
// front; parsing again would cost as much as all else.
func (h *Header) completed(t Tables, marker []byte, shift int) {
	h.ScanStart += shift
	h.DataStart += shift
	h.DataEnd += shift
	h.End += shift
	h.Trailing = 0
	h.QuantTables |= t.quant
	h.DCTables |= t.dc
	h.ACTables |= t.ac
	switch {
	case marker == nil:
	case marker[1] == markerAPP14:
		h.Adobe, h.Transform = true, marker[len(marker)-1]
	default:
		h.JFIF = true
	}
}
