package web

import "strings"

// harmless are the property keys that tell nothing of a patient, with the shape
// their values must have. All others (file name, barcode, user, dates, image
// id, free text) are left out unless the configuration opens them.
var harmless = map[string]func(string) bool{
	"openslide.vendor":               isWord,
	"openslide.quickhash-1":          isWord,
	"openslide.level-count":          isNumber,
	"openslide.mpp-x":                isNumber,
	"openslide.mpp-y":                isNumber,
	"openslide.objective-power":      isNumber,
	"openslide.background-color":     isWord,
	"openslide.bounds-x":             isNumber,
	"openslide.bounds-y":             isNumber,
	"openslide.bounds-width":         isNumber,
	"openslide.bounds-height":        isNumber,
	"openslide.icc-size":             isNumber,
	"tiff.XResolution":               isNumber,
	"tiff.YResolution":               isNumber,
	"tiff.ResolutionUnit":            isWord,
	"aperio.AppMag":                  isNumber,
	"aperio.MPP":                     isNumber,
	"aperio.OriginalWidth":           isNumber,
	"aperio.OriginalHeight":          isNumber,
	"aperio.Originalheight":          isNumber,
	"aperio.Left":                    isNumber,
	"aperio.Top":                     isNumber,
	"aperio.StripeWidth":             isNumber,
	"aperio.LineCameraSkew":          isNumber,
	"aperio.LineAreaXOffset":         isNumber,
	"aperio.LineAreaYOffset":         isNumber,
	"aperio.Focus Offset":            isNumber,
	"aperio.Exposure Time":           isNumber,
	"aperio.Exposure Scale":          isNumber,
	"aperio.DisplayColor":            isNumber,
	"aperio.Gamma":                   isNumber,
	"aperio.Filtered":                isNumber,
	"aperio.CalibrationAverageRed":   isNumber,
	"aperio.CalibrationAverageGreen": isNumber,
	"aperio.CalibrationAverageBlue":  isNumber,
}

// openProperty says whether a property may be shown to all.
func openProperty(key, value string) bool {
	if shape, ok := harmless[key]; ok {
		return shape(value)
	}
	if rest, ok := strings.CutPrefix(key, "openslide.level["); ok {
		n, what, ok := strings.Cut(rest, "].")
		return ok && isNumber(n) && isWord(what) && isNumber(value)
	}
	if rest, ok := strings.CutPrefix(key, "openslide.associated."); ok {
		name, what, ok := strings.Cut(rest, ".")
		known := name == "label" || name == "macro" || name == "thumbnail"
		return ok && known && isWord(what) && isNumber(value)
	}
	return false
}

// filterProperties drops what openProperty closes and counts it.
func filterProperties(all map[string]string) (open map[string]string, hidden int) {
	open = make(map[string]string, len(all))
	for k, v := range all {
		if openProperty(k, v) {
			open[k] = v
		} else {
			hidden++
		}
	}
	return open, hidden
}

// isNumber accepts a decimal number with either decimal sign. It is no parser:
// it only keeps words out. Eight digits in a row without a sign could be a
// date or a case number, but the keys it stands beside hold neither.
func isNumber(s string) bool {
	digits := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits++
		case c == '.' || c == ',' || c == '-' || c == '+' || c == 'e' || c == 'E':
		default:
			return false
		}
	}
	return digits > 0 && len(s) <= 32
}

// isWord accepts one word of letters, digits, '-' and '_'.
func isWord(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 80
}
