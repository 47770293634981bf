package j2kenc

// analyze splits a line into its low and high half by the reversible 5/3 filter
// (T.800 F.4.8.1), the line mirrored at its ends.
func analyze(line, tmp []int32) {
	n := len(line)
	if n < 2 {
		return
	}
	at := func(i int) int32 {
		if i < 0 {
			i = -i
		}
		if i >= n {
			i = 2*(n-1) - i
		}
		return line[i]
	}
	for i := 1; i < n; i += 2 {
		line[i] -= (at(i-1) + at(i+1)) >> 1
	}
	for i := 0; i < n; i += 2 {
		line[i] += (at(i-1) + at(i+1) + 2) >> 2
	}
	low := (n + 1) / 2
	for i, v := range line {
		tmp[i&1*low+i>>1] = v
	}
	copy(line, tmp[:n])
}

// transform replaces w by h samples, rows stride apart, by their wavelet
// coefficients: each level's low part is in the top left of the one before.
func transform(p []int32, stride, w, h, levels int) {
	tmp, column := make([]int32, max(w, h)), make([]int32, h)
	for range levels {
		for x := range w {
			for y := range h {
				column[y] = p[y*stride+x]
			}
			analyze(column[:h], tmp)
			for y := range h {
				p[y*stride+x] = column[y]
			}
		}
		for y := range h {
			analyze(p[y*stride:y*stride+w], tmp)
		}
		w, h = (w+1)/2, (h+1)/2
	}
}
