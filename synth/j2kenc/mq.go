package j2kenc

// mqState is a row of the probability table (T.800 table C.2).
type mqState struct {
	qe         uint32
	nmps, nlps uint8
	flip       uint8
}

var mqStates = [47]mqState{
	{0x5601, 1, 1, 1}, {0x3401, 2, 6, 0}, {0x1801, 3, 9, 0}, {0x0ac1, 4, 12, 0}, {0x0521, 5, 29, 0}, {0x0221, 38, 33, 0},
	{0x5601, 7, 6, 1}, {0x5401, 8, 14, 0}, {0x4801, 9, 14, 0}, {0x3801, 10, 14, 0}, {0x3001, 11, 17, 0}, {0x2401, 12, 18, 0},
	{0x1c01, 13, 20, 0}, {0x1601, 29, 21, 0}, {0x5601, 15, 14, 1}, {0x5401, 16, 14, 0}, {0x5101, 17, 15, 0}, {0x4801, 18, 16, 0},
	{0x3801, 19, 17, 0}, {0x3401, 20, 18, 0}, {0x3001, 21, 19, 0}, {0x2801, 22, 19, 0}, {0x2401, 23, 20, 0}, {0x2201, 24, 21, 0},
	{0x1c01, 25, 22, 0}, {0x1801, 26, 23, 0}, {0x1601, 27, 24, 0}, {0x1401, 28, 25, 0}, {0x1201, 29, 26, 0}, {0x1101, 30, 27, 0},
	{0x0ac1, 31, 28, 0}, {0x09c1, 32, 29, 0}, {0x08a1, 33, 30, 0}, {0x0521, 34, 31, 0}, {0x0441, 35, 32, 0}, {0x02a1, 36, 33, 0},
	{0x0221, 37, 34, 0}, {0x0141, 38, 35, 0}, {0x0111, 39, 36, 0}, {0x0085, 40, 37, 0}, {0x0049, 41, 38, 0}, {0x0025, 42, 39, 0},
	{0x0015, 43, 40, 0}, {0x0009, 44, 41, 0}, {0x0005, 45, 42, 0}, {0x0001, 45, 43, 0}, {0x5601, 46, 46, 0},
}

// The contexts of tier 1 (T.800 table D.1 to D.5), by number.
const (
	ctxSign       = 9
	ctxMagnitude  = 14
	ctxRun        = 17
	ctxUniform    = 18
	contextsCount = 19
)

// mqEncoder is the arithmetic coder of T.800 annex C.2. out[0] stands for the
// byte before the first and is dropped.
type mqEncoder struct {
	a, c  uint32
	ct    int
	out   []byte
	index [contextsCount]uint8
	mps   [contextsCount]uint8
}

// reset starts a code-block (T.800 table D.7).
func (m *mqEncoder) reset() {
	*m = mqEncoder{a: 0x8000, ct: 12, out: append(m.out[:0], 0)}
	m.index[0], m.index[ctxRun], m.index[ctxUniform] = 4, 3, 46
}

func (m *mqEncoder) encode(ctx int, bit uint8) {
	s := &mqStates[m.index[ctx]]
	m.a -= s.qe
	if bit == m.mps[ctx] {
		if m.a&0x8000 != 0 {
			m.c += s.qe
			return
		}
		if m.a < s.qe {
			m.a = s.qe
		} else {
			m.c += s.qe
		}
		m.index[ctx] = s.nmps
	} else {
		if m.a < s.qe {
			m.c += s.qe
		} else {
			m.a = s.qe
		}
		m.mps[ctx] ^= s.flip
		m.index[ctx] = s.nlps
	}
	for m.a&0x8000 == 0 {
		m.a <<= 1
		m.c <<= 1
		if m.ct--; m.ct == 0 {
			m.byteOut()
		}
	}
}

// byteOut moves a byte out of the code register, with a bit to spare after 0xff.
func (m *mqEncoder) byteOut() {
	last := &m.out[len(m.out)-1]
	if *last != 0xff && m.c >= 1<<27 {
		*last++
		m.c &= 1<<27 - 1
	}
	if *last == 0xff {
		m.out = append(m.out, byte(m.c>>20))
		m.c &= 1<<20 - 1
		m.ct = 7
		return
	}
	m.out = append(m.out, byte(m.c>>19))
	m.c &= 1<<19 - 1
	m.ct = 8
}

// flush ends the code-block and returns its bytes, shared until reset.
func (m *mqEncoder) flush() []byte {
	top := m.c + m.a
	m.c |= 0xffff
	if m.c >= top {
		m.c -= 0x8000
	}
	for range 2 {
		m.c <<= uint(m.ct)
		m.byteOut()
	}
	if m.out[len(m.out)-1] == 0xff {
		m.out = m.out[:len(m.out)-1]
	}
	return m.out[1:]
}
