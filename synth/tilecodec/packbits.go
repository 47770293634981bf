package tilecodec

// PackBits appends src packed row by row, row bytes each (TIFF 6.0 §9: no run
// crosses a row).
func PackBits(dst, src []byte, row int) []byte {
	for len(src) > 0 {
		n := min(row, len(src))
		dst = packRow(dst, src[:n])
		src = src[n:]
	}
	return dst
}

func packRow(dst, p []byte) []byte {
	for len(p) > 0 {
		run := 1
		for run < len(p) && run < 128 && p[run] == p[0] {
			run++
		}
		if run > 1 {
			dst = append(dst, byte(257-run), p[0])
			p = p[run:]
			continue
		}
		n := 1
		for n < len(p) && n < 128 && (n+1 >= len(p) || p[n] != p[n+1]) {
			n++
		}
		dst = append(append(dst, byte(n-1)), p[:n]...)
		p = p[n:]
	}
	return dst
}

// Predict replaces samples by the difference to the same channel of the pixel
// on their left, row by row (TIFF 6.0 §14); 8-bit samples, in place.
func Predict(p []byte, width, channels int) {
	for row := width * channels; len(p) >= row; p = p[row:] {
		for i := row - 1; i >= channels; i-- {
			p[i] -= p[i-channels]
		}
	}
}
