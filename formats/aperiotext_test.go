package formats

import (
	"maps"
	"testing"
)

// The maps were read off OpenSlide 4.0.1's aperio.* properties.
func TestAperioKeys(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"Aperio v1\r\n64x64|":      {},
		"Aperio v1":                {},
		"Aperio x = y|a = b":       {"a": "b"},
		"A|Title = Mag = 40X":      {"Title": "Mag = 40X"},
		"A|Key=value":              {"Key": "value"},
		"A| Key  =  v ":            {"Key": "v"},
		"A|Key = ":                 {"Key": ""},
		"A|= value|x = 1":          {"": "value", "x": "1"},
		"A|Key|x = 1":              {"x": "1"},
		"A||x = 1":                 {"x": "1"},
		"A|K = 1|K = 2":            {"K": "2"},
		"A|K\t=\tv\n":              {"K": "v"},
		"A|a =  = b":               {"a": "= b"},
		"A|\vK = v\f":              {"\vK": "v"},
		"A|A = x\r\ny = z":         {"A": "x\r\ny = z"},
		"A|MPP = 0,2520|AppMag=40": {"MPP": "0,2520", "AppMag": "40"},
		"A v2\n1x1 (240x240);A v1\n(256x256)|AppMag = 20|StripeWidth = 2040": {"AppMag": "20", "StripeWidth": "2040"},
	} {
		if got := aperioKeys(text); !maps.Equal(got, want) {
			t.Errorf("aperioKeys(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestAperioKind(t *testing.T) {
	for text, want := range map[string]string{
		"Aperio Image Library v11.2.1\r\nlabel 387x463": "label",
		"Aperio Image Library v11.2.1\nmacro 1280x431":  "macro",
		"Aperio\nlabel":               "label",
		"Aperio\nlabelled 3":          "",
		"Aperio\n\nlabel 3":           "label",
		"label 3":                     "",
		"Aperio\n574x768 -> 574x768 ": "",
	} {
		if got := aperioKind(text); got != want {
			t.Errorf("aperioKind(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestPositive(t *testing.T) {
	for text, want := range map[string]bool{"0,2520": true, "20": true, "0": false, "-1": false, "inf": false, "": false, "40X": false} {
		if _, got := positive(text); got != want {
			t.Errorf("positive(%q) = %v, want %v", text, got, want)
		}
	}
}
