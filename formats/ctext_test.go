package formats

import (
	"math"
	"testing"
)

func TestFormatDoubleLikeC(t *testing.T) {
	for x, want := range map[float64]string{
		0:                     "0",
		1:                     "1",
		0.499:                 "0.499",
		0.1:                   "0.10000000000000001",
		25.4:                  "25.399999999999999",
		20.5:                  "20.5",
		100000:                "100000",
		1e16:                  "10000000000000000",
		1e17:                  "1e+17",
		1e-5:                  "1.0000000000000001e-05",
		1e-4:                  "0.0001",
		4.0161290322580641:    "4.0161290322580641",
		123456789012345678:    "1.2345678901234568e+17",
		9.9999999999999994e30: "9.9999999999999996e+30",
		math.Inf(1):           "inf",
		math.Inf(-1):          "-inf",
	} {
		if got := formatDouble(x); got != want {
			t.Errorf("formatDouble(%v) = %q, want %q", x, got, want)
		}
	}
	if got := formatDouble(math.Copysign(0, -1)); got != "-0" {
		t.Errorf("negative zero = %q, want -0", got)
	}
	if got := formatDouble(math.NaN()); got != "nan" {
		t.Errorf("NaN = %q, want nan", got)
	}
}

// The right column was read off OpenSlide 4.0.1's openslide.objective-power.
func TestParseDoubleLikeOpenSlide(t *testing.T) {
	for s, want := range map[string]string{
		"20": "20", "20.0": "20", "40X": "", "": "", "0x14": "20", "1e1": "10",
		"20,5": "20.5", "nan": "", "nan(1)": "", "inf": "inf", "-inf": "-inf",
		"+inf": "inf", "infinity": "inf", "-5": "-5", "0": "0", "00020": "20",
		"1e400": "", "1e-400": "", "1e-310": "", "4.9e-324": "",
		"2.3e-308": "2.2999999999999999e-308", ".5": "0.5", "5.": "5",
		"+5": "5", "1_0": "", "１": "", "0x1p3": "8", "0x1.8": "1.5",
		"0X1P-2": "0.25", "1e": "", "1e+": "", "0x": "", "1d": "", "1,2,3": "",
		"1.2,3": "", "1 2": "", "-0": "-0", "0b1": "", "1p3": "", "0e999": "0",
	} {
		x, ok := parseDouble(s)
		got := ""
		if ok {
			got = formatDouble(x)
		}
		if got != want {
			t.Errorf("parseDouble(%q) = %q, want %q", s, got, want)
		}
	}
}
