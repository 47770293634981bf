package verify

import (
	"fmt"
	"strings"

	"github.com/microtome/microtome"
)

// Histogram counts absolute differences of 8-bit values.
type Histogram struct {
	Counts [256]int64 `json:"-"`
	Values int64      `json:"values"`
	Max    int        `json:"max"`
}

// add compares one opaque row of ours with OpenSlide's RGBA over a background.
func (h *Histogram) add(ours []byte, channels int, theirs []byte, bg microtome.RGB) {
	for i, j := 0, 0; j+3 < len(theirs) && i+channels <= len(ours); i, j = i+channels, j+4 {
		r, g, b := over(theirs[j:j+4], bg)
		or, og, ob := ours[i], ours[i], ours[i]
		if channels >= 3 {
			og, ob = ours[i+1], ours[i+2]
		}
		h.Counts[absDiff(or, r)]++
		h.Counts[absDiff(og, g)]++
		h.Counts[absDiff(ob, b)]++
		h.Values += 3
	}
}

// finish sets Max from the counts.
func (h *Histogram) finish() {
	for d := 255; d > 0; d-- {
		if h.Counts[d] > 0 {
			h.Max = d
			return
		}
	}
}

// over composites a straight RGBA value over an opaque background.
func over(p []byte, bg microtome.RGB) (r, g, b uint8) {
	switch p[3] {
	case 255:
		return p[0], p[1], p[2]
	case 0:
		return bg.R, bg.G, bg.B
	}
	mix := func(c, under uint8) uint8 {
		a := uint32(p[3])
		return uint8((uint32(c)*a + uint32(under)*(255-a) + 127) / 255)
	}
	return mix(p[0], bg.R), mix(p[1], bg.G), mix(p[2], bg.B)
}

func absDiff(a, b uint8) uint8 {
	if a > b {
		return a - b
	}
	return b - a
}

// String gives the distribution on one line, empty bins left out.
func (h *Histogram) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d values, max %d:", h.Values, h.Max)
	for d, n := range h.Counts {
		if n > 0 {
			fmt.Fprintf(&b, " %d×%d", d, n)
		}
	}
	return b.String()
}
