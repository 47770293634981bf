// Package canon rebuilds JPEG tiles as canonical baseline streams, which hold
// nothing but what a hardware decoder needs, and says why when a tile can't be
// one.
package canon

import (
	"fmt"

	"github.com/microtome/microtome"
)

// Sampling is how much smaller the chroma of a stream is, as the engine numbers
// it.
type Sampling uint8

// The samplings that hardware decodes.
const (
	S444 Sampling = iota
	S422          // chroma half as wide
	S420          // half as wide and half as high
	S440          // half as high
	Gray
)

// String names it.
func (s Sampling) String() string {
	if int(s) >= len(samplingNames) {
		return fmt.Sprintf("sampling %d", uint8(s))
	}
	return samplingNames[s]
}

var samplingNames = [...]string{"4:4:4", "4:2:2", "4:2:0", "4:4:0", "grey"}

// The sizes of streams that are taken, in pixels a side. Below 64 rocJPEG
// refuses; above, a lane's planes would grow without need.
const (
	MinSide = 64
	MaxSide = 2048
)

// Slack is how many zero bytes follow the stream's EOI: parsers of vendors read
// ahead.
const Slack = 64

// Component is one of a stream's components.
type Component struct {
	Blocks        int // of an MCU
	Quant, DC, AC int // table numbers
	horiz, vertic int
	id            byte
}

// Stream is a tile that hardware can decode. Its tables and its scan are places in
// Data, the tile's own.
type Stream struct {
	Data          []byte
	Width, Height int
	Sampling      Sampling
	Components    [3]Component
	N             int // of components
	Restart       int // MCUs between restarts, 0: none
	MCUs          int
	Quant         [4]int // where 64 values in zigzag order begin, 0: no table
	DC, AC        [2]Huffman
	Scan, ScanLen int // entropy-coded bytes, without the EOI
}

// Huffman is a table as DHT holds it: how many codes of each length, at At, and
// behind those 16 bytes N values. At is 0 when the stream has none.
type Huffman struct{ At, N int }

// ineligible is why a tile goes to the CPU. Its text is a label of counts: it has
// few values.
type ineligible string

func (e ineligible) Error() string { return string(e) }

// Is makes errors.Is(err, microtome.ErrUnsupported) hold.
func (e ineligible) Is(target error) bool { return target == microtome.ErrUnsupported }

// Parse reads a JPEG tile. Its error is the reason why hardware can't have it:
// whether the tile is corrupt is for the CPU to say.
func Parse(t *microtome.Tile, s *Stream) error {
	*s = Stream{Data: t.Data}
	p := parser{s: s}
	if t.Codec != microtome.CodecJPEG {
		return ineligible("not JPEG")
	}
	if t.FirstRow != 0 || t.StreamHeight != t.Height {
		return ineligible("a band of a strip")
	}
	if len(p.s.Data) < 4 || p.s.Data[0] != 0xFF || p.s.Data[1] != 0xD8 {
		return ineligible("no SOI")
	}
	p.at = 2
	for s.Scan == 0 {
		if err := p.segment(); err != nil {
			return err
		}
	}
	if s.Width != t.Width || s.Height != t.Height {
		return ineligible("another size than the tile")
	}
	return p.check(t.Color)
}

type parser struct {
	s  *Stream
	at int
}

// segment reads a marker segment (T.81 B.1.1.4).
func (p *parser) segment() error {
	d := p.s.Data
	if p.at+4 > len(d) || d[p.at] != 0xFF {
		return ineligible("broken header")
	}
	m := d[p.at+1]
	n := int(d[p.at+2])<<8 | int(d[p.at+3])
	if m == 0xFF || m == 0x01 || m >= 0xD0 && m <= 0xD9 || n < 2 || p.at+2+n > len(d) {
		return ineligible("broken header")
	}
	seg, at := d[p.at+4:p.at+2+n], p.at+4
	p.at += 2 + n
	switch m {
	case 0xC0:
		return p.frame(seg)
	case 0xC4:
		return p.huffman(seg, at)
	case 0xDB:
		return p.quant(seg, at)
	case 0xDD:
		if len(seg) != 2 {
			return ineligible("broken header")
		}
		p.s.Restart = int(seg[0])<<8 | int(seg[1])
		return nil
	case 0xDA:
		return p.scan(seg)
	}
	if m >= 0xE0 && m <= 0xEF || m == 0xFE { // APPn, COM
		return application(m, seg)
	}
	return ineligible("not baseline")
}

// application refuses what libjpeg-turbo warns of: a JFIF that is not version 1,
// an Adobe marker with an unknown transform. The CPU says what such a tile is.
func application(marker byte, seg []byte) error {
	jfif := marker == 0xE0 && len(seg) >= 14 && string(seg[:5]) == "JFIF\x00" && seg[5] != 1
	adobe := marker == 0xEE && len(seg) >= 12 && string(seg[:5]) == "Adobe" && seg[11] > 1
	if jfif || adobe {
		return ineligible("an unknown JFIF or Adobe marker")
	}
	return nil
}

// frame reads SOF0 (T.81 B.2.2).
func (p *parser) frame(seg []byte) error {
	s := p.s
	if s.N != 0 {
		return ineligible("several frames")
	}
	if len(seg) < 6 || len(seg) != 6+3*int(seg[5]) || seg[0] != 8 {
		return ineligible("broken header")
	}
	s.Height, s.Width, s.N = int(seg[1])<<8|int(seg[2]), int(seg[3])<<8|int(seg[4]), int(seg[5])
	if s.N != 1 && s.N != 3 {
		n := s.N
		s.N = 0
		return ineligible(fmt.Sprintf("%d components", min(n, 5)))
	}
	if min(s.Width, s.Height) < MinSide || max(s.Width, s.Height) > MaxSide {
		return ineligible(fmt.Sprintf("not %d to %d pixels a side", MinSide, MaxSide))
	}
	for i := range s.N {
		c := seg[6+3*i:]
		if c[2] > 3 {
			return ineligible("broken header")
		}
		s.Components[i] = Component{id: c[0], horiz: int(c[1] >> 4), vertic: int(c[1] & 15), Quant: int(c[2])}
	}
	return p.sampling()
}

// SamplingOf names the sampling factors, across and down, of a stream's components.
// Its error is why hardware can't have them: factors that say the same in other
// numbers (4:4:4 as 2x2 everywhere) go to the CPU, since decoders disagree on them.
func SamplingOf(factors ...[2]int) (Sampling, error) {
	one := [2]int{1, 1}
	if len(factors) == 1 {
		if factors[0] != one {
			return 0, ineligible("grey with sampling factors")
		}
		return Gray, nil
	}
	for _, f := range factors[1:] {
		if f != one {
			return 0, ineligible("odd sampling factors")
		}
	}
	switch factors[0] {
	case one:
		return S444, nil
	case [2]int{2, 1}:
		return S422, nil
	case [2]int{2, 2}:
		return S420, nil
	case [2]int{1, 2}:
		return S440, nil
	}
	return 0, ineligible("odd sampling factors")
}

// sampling names the factors.
func (p *parser) sampling() error {
	s := p.s
	var factors [3][2]int
	for i := range s.N {
		factors[i] = [2]int{s.Components[i].horiz, s.Components[i].vertic}
	}
	var err error
	if s.Sampling, err = SamplingOf(factors[:s.N]...); err != nil {
		return err
	}
	h, v := s.Components[0].horiz, s.Components[0].vertic
	if s.Width%h != 0 || s.Height%v != 0 {
		return ineligible("half a chroma sample at the edge")
	}
	s.MCUs = (s.Width + 8*h - 1) / (8 * h) * ((s.Height + 8*v - 1) / (8 * v))
	for i := range s.N {
		c := &s.Components[i]
		c.Blocks = c.horiz * c.vertic
	}
	return nil
}

// quant reads DQT (T.81 B.2.4.1); 8-bit tables only.
func (p *parser) quant(seg []byte, at int) error {
	for ; len(seg) > 0; seg, at = seg[65:], at+65 {
		if seg[0]>>4 != 0 || seg[0] > 3 || len(seg) < 65 {
			return ineligible("quantization table of 16 bits")
		}
		p.s.Quant[seg[0]] = at + 1
	}
	return nil
}

// huffman reads DHT (T.81 B.2.4.2); baseline has two tables of each class.
func (p *parser) huffman(seg []byte, at int) error {
	for len(seg) > 0 {
		if len(seg) < 17 {
			return ineligible("broken header")
		}
		n := 0
		for _, b := range seg[1:17] {
			n += int(b)
		}
		class, id := seg[0]>>4, seg[0]&15
		if class > 1 || id > 1 || n > 256 || len(seg) < 17+n {
			return ineligible("Huffman table of another kind")
		}
		t := Huffman{At: at + 1, N: n}
		if class == 0 {
			p.s.DC[id] = t
		} else {
			p.s.AC[id] = t
		}
		seg, at = seg[17+n:], at+17+n
	}
	return nil
}

// scan reads SOS (T.81 B.2.3) and takes what follows up to the EOI. A stream that
// has none, or anything behind it, is for the CPU.
func (p *parser) scan(seg []byte) error {
	s := p.s
	if s.N == 0 || len(seg) != 4+2*s.N || int(seg[0]) != s.N {
		return ineligible("not one interleaved scan")
	}
	for i := range s.N {
		c := &s.Components[i]
		if seg[1+2*i] != c.id {
			return ineligible("not one interleaved scan")
		}
		c.DC, c.AC = int(seg[2+2*i]>>4), int(seg[2+2*i]&15)
		if c.DC > 1 || c.AC > 1 {
			return ineligible("Huffman table of another kind")
		}
	}
	if tail := seg[1+2*s.N:]; tail[0] != 0 || tail[1] != 63 || tail[2] != 0 {
		return ineligible("not baseline")
	}
	rest := p.s.Data[p.at:]
	if n := len(rest); n >= 2 && rest[n-2] == 0xFF && rest[n-1] == 0xD9 {
		s.Scan, s.ScanLen = p.at, n-2
		return nil
	}
	// Writers pad tiles to whole words.
	for n := len(rest); n > 2 && n > len(rest)-8; n-- {
		if rest[n-1] == 0xD9 && rest[n-2] == 0xFF {
			s.Scan, s.ScanLen = p.at, n-2
			return nil
		}
		if rest[n-1] != 0 {
			break
		}
	}
	return ineligible("no EOI at the end")
}

// check sees that all tables are there, and that the components are what the
// tile's colour needs.
func (p *parser) check(color microtome.Color) error {
	s := p.s
	for i := range s.N {
		c := &s.Components[i]
		if s.Quant[c.Quant] == 0 || s.DC[c.DC].At == 0 || s.AC[c.AC].At == 0 {
			return ineligible("tables are missing")
		}
		for _, q := range s.Data[s.Quant[c.Quant]:][:64] {
			if q == 0 {
				return ineligible("a quantizer of 0")
			}
		}
	}
	gray := color == microtome.ColorGray || color == microtome.ColorGrayWhite
	switch {
	case color == microtome.ColorPalette, gray && s.N != 1:
		return ineligible("another colour than the tile")
	case s.ScanLen == 0:
		return ineligible("no data")
	}
	return nil
}

// Size is how many bytes Append adds, Slack included.
func (s *Stream) Size() int { return s.headerSize() + s.ScanLen + 2 + Slack }

func (s *Stream) headerSize() int {
	n := 2 + 4 + 6 + 3*s.N + 2 + 6 + 2*s.N // SOI, SOF0, SOS
	if s.Restart > 0 {
		n += 6
	}
	quant, dc, ac := s.used()
	for i := range 4 {
		if quant[i] {
			n += 4 + 65
		}
	}
	for i := range 2 {
		if dc[i] {
			n += 4 + 17 + s.DC[i].N
		}
		if ac[i] {
			n += 4 + 17 + s.AC[i].N
		}
	}
	return n
}

func (s *Stream) used() (quant [4]bool, dc, ac [2]bool) {
	for _, c := range s.Components[:s.N] {
		quant[c.Quant], dc[c.DC], ac[c.AC] = true, true, true
	}
	return quant, dc, ac
}

// Append appends the canonical stream: SOI, the tables that are used, SOF0, DRI
// where there are restarts, SOS, the scan, EOI and Slack zero bytes. The stream
// itself ends before those.
func (s *Stream) Append(out []byte) []byte {
	out = append(out, 0xFF, 0xD8)
	quant, dc, ac := s.used()
	for i := range 4 {
		if quant[i] {
			out = append(out, 0xFF, 0xDB, 0, 67, byte(i))
			out = append(out, s.Data[s.Quant[i]:][:64]...)
		}
	}
	out = append(out, 0xFF, 0xC0, 0, byte(8+3*s.N), 8, byte(s.Height>>8), byte(s.Height), byte(s.Width>>8), byte(s.Width), byte(s.N))
	for i, c := range s.Components[:s.N] {
		out = append(out, byte(i+1), byte(c.horiz<<4|c.vertic), byte(c.Quant))
	}
	for i := range 2 {
		if dc[i] {
			out = s.table(out, s.DC[i], byte(i))
		}
		if ac[i] {
			out = s.table(out, s.AC[i], byte(0x10|i))
		}
	}
	if s.Restart > 0 {
		out = append(out, 0xFF, 0xDD, 0, 4, byte(s.Restart>>8), byte(s.Restart))
	}
	out = append(out, 0xFF, 0xDA, 0, byte(6+2*s.N), byte(s.N))
	for i, c := range s.Components[:s.N] {
		out = append(out, byte(i+1), byte(c.DC<<4|c.AC))
	}
	out = append(out, 0, 63, 0)
	out = append(out, s.Data[s.Scan:][:s.ScanLen]...)
	out = append(out, 0xFF, 0xD9)
	return append(out, zeros[:]...)
}

var zeros [Slack]byte

func (s *Stream) table(out []byte, t Huffman, id byte) []byte {
	n := 19 + t.N
	out = append(out, 0xFF, 0xC4, byte(n>>8), byte(n), id)
	return append(out, s.Data[t.At:][:16+t.N]...)
}
