package jpegstream

import "github.com/microtome/microtome"

// Canonical rebuilds a complete baseline stream with nothing but what decoding
// needs, in one order: SOI, DQT, SOF0, DHT, DRI, SOS, data, EOI. Tables that no
// component uses, application data and comments are gone, so the colour must be
// known elsewhere.
//
// It fails with Unsupported, naming the process, for what is not 8-bit
// sequential Huffman coding in one scan of all components, and with ErrCorrupt
// for a table that is missing.
func Canonical(stream []byte) ([]byte, Header, error) {
	h, err := Parse(stream)
	if err != nil {
		return nil, h, err
	}
	if err := h.canCanonical(); err != nil {
		return nil, h, err
	}
	t, err := collect(stream[:h.ScanStart])
	if err != nil {
		return nil, h, err
	}
	out := append(make([]byte, 0, h.End+1<<10), 0xFF, markerSOI)
	if out, err = t.appendQuant(out, h); err != nil {
		return nil, h, err
	}
	out = h.appendFrame(out)
	if out, err = t.appendHuffman(out, h); err != nil {
		return nil, h, err
	}
	if h.RestartInterval > 0 {
		out = append(out, 0xFF, markerDRI, 0, 4, byte(h.RestartInterval>>8), byte(h.RestartInterval))
	}
	out = h.appendScan(out)
	out = append(out, trimFill(stream[h.DataStart:h.DataEnd])...)
	out = append(out, 0xFF, markerEOI)
	h, err = Parse(out)
	return out, h, err
}

// trimFill drops fill bytes behind the data: they belong to the next marker.
func trimFill(p []byte) []byte {
	for len(p) > 0 && p[len(p)-1] == 0xFF {
		p = p[:len(p)-1]
	}
	return p
}

// canCanonical says why a stream has no canonical form.
func (h *Header) canCanonical() error {
	switch {
	case h.SOF != markerSOF0 && h.SOF != markerSOF1:
		return &microtome.Unsupported{Tag: "SOF", Value: h.Process()}
	case h.Precision != 8:
		return &microtome.Unsupported{Tag: "SOF", Value: h.Describe()}
	case h.NumComponents > MaxComponents:
		return &microtome.Unsupported{Tag: "JPEG components", Value: h.Describe()}
	case h.Scans != 1 || h.ScanComponents != h.NumComponents:
		return &microtome.Unsupported{Tag: "JPEG scans", Value: h.Describe()}
	case h.Width == 0 || h.Height == 0:
		return corrupt("size %dx%d", h.Width, h.Height)
	}
	blocks := 0
	for _, c := range h.Components[:h.NumComponents] {
		blocks += int(c.H) * int(c.V)
		switch {
		case c.DC > 3 || c.AC > 3:
			return corrupt("component %d: Huffman tables %d and %d", c.ID, c.DC, c.AC)
		case c.DC > 1 || c.AC > 1: // T.81 table B.5: baseline has two
			return &microtome.Unsupported{Tag: "SOF", Value: h.Describe() + " with four Huffman tables"}
		}
	}
	if h.NumComponents > 1 && blocks > 10 { // T.81 B.2.3
		return corrupt("%d blocks in an MCU", blocks)
	}
	return nil
}

// tableSet holds the definitions that are in force at the scan.
type tableSet struct {
	quant   [4][]byte
	huffman [2][4][]byte
}

func collect(head []byte) (tableSet, error) {
	var t tableSet
	for at := 2; at < len(head); {
		s, err := readSegment(head, at)
		if err != nil {
			return t, err
		}
		switch s.marker {
		case markerDQT:
			err = eachQuant(s.body, func(id uint8, table []byte) { t.quant[id] = table })
		case markerDHT:
			err = eachHuffman(s.body, func(class, id uint8, table []byte) { t.huffman[class][id] = table })
		}
		if err != nil {
			return t, err
		}
		at = s.end
	}
	return t, nil
}

// appendQuant writes each used table in a segment of its own, in 8 bits.
func (t *tableSet) appendQuant(out []byte, h Header) ([]byte, error) {
	used := [4]bool{}
	for _, c := range h.Components[:h.NumComponents] {
		used[c.Quant] = true
	}
	for id, table := range t.quant {
		if !used[id] {
			continue
		}
		if table == nil {
			return nil, corrupt("no quantization table %d", id)
		}
		out = append(out, 0xFF, markerDQT, 0, 67, byte(id))
		if table[0]>>4 == 0 {
			out = append(out, table[1:]...)
			continue
		}
		for i := 1; i < len(table); i += 2 {
			if table[i] != 0 {
				return nil, &microtome.Unsupported{Tag: "DQT", Value: "16-bit"}
			}
			out = append(out, table[i+1])
		}
	}
	return out, nil
}

func (t *tableSet) appendHuffman(out []byte, h Header) ([]byte, error) {
	used := [2][4]bool{}
	for _, c := range h.Components[:h.NumComponents] {
		used[0][c.DC], used[1][c.AC] = true, true
	}
	for class := range used {
		for id, table := range t.huffman[class] {
			if !used[class][id] {
				continue
			}
			if table == nil {
				return nil, corrupt("no Huffman table %d of class %d", id, class)
			}
			n := len(table) + 2
			out = append(out, 0xFF, markerDHT, byte(n>>8), byte(n))
			out = append(out, table...)
		}
	}
	return out, nil
}

func (h *Header) appendFrame(out []byte) []byte {
	n := h.NumComponents
	out = append(out, 0xFF, markerSOF0, 0, byte(8+3*n), 8,
		byte(h.Height>>8), byte(h.Height), byte(h.Width>>8), byte(h.Width), byte(n))
	for _, c := range h.Components[:n] {
		out = append(out, c.ID, c.H<<4|c.V, c.Quant)
	}
	return out
}

// appendScan writes the scan header in the frame's order of components, which
// the only scan of a stream must keep (T.81 B.2.3).
func (h *Header) appendScan(out []byte) []byte {
	n := h.NumComponents
	out = append(out, 0xFF, markerSOS, 0, byte(6+2*n), byte(n))
	for _, c := range h.Components[:n] {
		out = append(out, c.ID, c.DC<<4|c.AC)
	}
	return append(out, 0, 63, 0)
}
