package formats

import (
	"math"
	"strconv"
	"strings"
)

// OpenSlide writes and reads its numbers by C's rules in the C locale, so its
// values can only be equalled by the same rules.

// formatDouble writes x as C's %.17g does.
func formatDouble(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	return strconv.FormatFloat(x, 'g', 17, 64)
}

// parseDouble reads a whole string as C's strtod does, a decimal comma
// allowed. Not-a-number, over- and underflow are refused.
func parseDouble(s string) (float64, bool) {
	s = strings.TrimLeft(strings.ReplaceAll(s, ",", "."), " \t\n\v\f\r")
	if strings.Contains(s, "_") {
		return 0, false // Go's digit separator, unknown to C
	}
	if isHex(s) && !strings.ContainsAny(s, "pP") {
		s += "p0" // C makes the binary exponent optional, Go does not
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(x) {
		return 0, false
	}
	// C reports a range error below the smallest normal number.
	if math.Abs(x) < 0x1p-1022 && (x != 0 || hasNonZeroDigit(s)) {
		return 0, false
	}
	return x, true
}

func isHex(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X")
}

func hasNonZeroDigit(s string) bool {
	if isHex(s) {
		mantissa, _, _ := strings.Cut(strings.ToLower(s), "p")
		_, digits, _ := strings.Cut(mantissa, "x")
		return strings.ContainsAny(digits, "123456789abcdef")
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	return strings.ContainsAny(mantissa, "123456789")
}

// trimC strips what C's isspace calls space, but for the vertical tab, which
// GLib's g_ascii_isspace leaves out.
func trimC(s string) string { return strings.Trim(s, " \t\n\f\r") }
