package microtome_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/microtome/microtome"
)

// imageNet are the usual mean and standard deviation of ImageNet's colours.
var imageNet = [2][3]float64{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}

// binary is a small binary format of IEEE 754, by its definition.
type binary struct{ fraction, exponent int }

func (f binary) value(bits uint32) float64 {
	field, fraction := int(bits>>f.fraction)&(1<<f.exponent-1), float64(bits&(1<<f.fraction-1))
	bias := 1<<(f.exponent-1) - 1
	if field == 0 {
		return math.Ldexp(fraction, 1-bias-f.fraction)
	}
	return math.Ldexp(fraction+float64(int(1)<<f.fraction), field-bias-f.fraction)
}

// nearest looks for the nearest number among all that there are, the even one of
// two.
func (f binary) nearest(v float64) uint32 {
	var sign uint32
	if math.Signbit(v) {
		v, sign = -v, 1<<(f.fraction+f.exponent)
	}
	infinity := uint32(1<<f.exponent-1) << f.fraction
	all := make([]uint32, infinity)
	for i := range all {
		all[i] = uint32(i)
	}
	i, exact := slices.BinarySearchFunc(all, v, func(bits uint32, v float64) int {
		switch w := f.value(bits); {
		case w < v:
			return -1
		case w > v:
			return 1
		}
		return 0
	})
	bits := uint32(i)
	if !exact {
		// What would come after the last stands for infinity.
		low, middle := bits-1, (f.value(bits-1)+f.value(bits))/2
		if v < middle || v == middle && low%2 == 0 {
			bits = low
		}
	}
	return sign | bits
}

// Every sample's value is the nearest of the type's, for usual and unusual means.
func TestLUT(t *testing.T) {
	for name, m := range map[string][2][3]float64{
		"none":        {{}, {1, 1, 1}},
		"ImageNet":    imageNet,
		"half":        {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
		"CLIP":        {{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},
		"H&E":         {{0.707223, 0.578729, 0.703617}, {0.211883, 0.230117, 0.177517}},
		"as they are": {{}, {1 / 255.0, 1 / 255.0, 1 / 255.0}},
		"subnormal":   {{0.1, 100 / 255.0, 0}, {3e4, 5e6, 1e8}},
		"large":       {{1, 0, -1}, {1.6e-5, 1.6e-5, 3.2e-5}},
	} {
		for typ, f := range map[microtome.DataType]binary{microtome.Float16: {10, 5}, microtome.BFloat16: {7, 8}} {
			lut, err := microtome.NewLUT(typ, m[0], m[1])
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for c := range lut {
				for x, bits := range lut[c] {
					v := (float64(x)/255 - m[0][c]) / m[1][c]
					if want := f.nearest(v); bits != want {
						t.Fatalf("%s, %s: %d of channel %d is %#x, want %#x (%g)", name, typ, x, c, bits, want, v)
					}
				}
			}
		}
		lut, err := microtome.NewLUT(microtome.Float32, m[0], m[1])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for c := range lut {
			for x, bits := range lut[c] {
				if want := math.Float32bits(float32((float64(x)/255 - m[0][c]) / m[1][c])); bits != want {
					t.Fatalf("%s: %d of channel %d is %#x, want %#x", name, x, c, bits, want)
				}
			}
		}
	}
}

// A value is rounded once: by way of float32 some ties would go the other way.
func TestLUTValues(t *testing.T) {
	for _, c := range []struct {
		typ  microtome.DataType
		v    float64 // of sample 0
		want uint32
	}{
		{microtome.Float16, 1, 0x3c00}, {microtome.Float16, -2, 0xc000}, {microtome.Float16, 1.0 / 3, 0x3555},
		{microtome.Float16, 65504, 0x7bff}, {microtome.Float16, -65519.999, 0xfbff}, {microtome.Float16, 0x1p-14, 0x400},
		{microtome.Float16, 0x1p-24, 1}, {microtome.Float16, 0x1p-25, 0}, {microtome.Float16, -0x1p-26, 0x8000}, {microtome.Float16, 3 * 0x1p-25, 2}, {microtome.Float16, 0x1.8p-25, 1},
		{microtome.Float16, 0x1.ff8p-15, 0x3ff}, {microtome.Float16, 0x1.ffbp-15, 0x3ff}, {microtome.Float16, 0x1.ffcp-15, 0x400},
		{microtome.Float16, 1 + 0x1p-11, 0x3c00}, {microtome.Float16, 1 + 0x1p-11 + 0x1p-40, 0x3c01}, {microtome.Float16, 1 + 3*0x1p-11 - 0x1p-40, 0x3c01},
		{microtome.BFloat16, 1, 0x3f80}, {microtome.BFloat16, 1 + 0x1p-8, 0x3f80}, {microtome.BFloat16, 1 + 0x1p-8 + 0x1p-40, 0x3f81}, {microtome.BFloat16, 3e38, 0x7f62},
		{microtome.BFloat16, 0x1p-133, 1}, {microtome.BFloat16, 0x1p-134, 0}, {microtome.BFloat16, 0x1p-126, 0x80},
		{microtome.Float32, 1, 0x3f800000}, {microtome.Float32, 0x1p-149, 1}, {microtome.Float32, 0x1p-150, 0}, {microtome.Float32, 0x1.fffffefp-127, 0x800000},
	} {
		lut, err := microtome.NewLUT(c.typ, [3]float64{-c.v, 0, 0}, [3]float64{1, 1, 1})
		if err != nil {
			t.Error(err)
		} else if lut[0][0] != c.want {
			t.Errorf("%s of %g is %#x, want %#x", c.typ, c.v, lut[0][0], c.want)
		}
	}
}

func TestLUTRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		typ       microtome.DataType
		mean, std float64
		says      string
	}{
		{microtome.Float32, 0, 0, "std of channel 1 is 0"}, {microtome.Float32, 0, -1, "std of channel 1 is -1"}, {microtome.Float32, 0, nan, "std of channel 1 is NaN"},
		{microtome.Float32, 0, inf, "std of channel 1 is +Inf"}, {microtome.Float32, nan, 1, "mean of channel 1 is NaN"}, {microtome.Float32, -inf, 1, "mean of channel 1 is -Inf"},
		{microtome.Float16, 0, 1e-5, "which float16 can't hold"}, {microtome.Float16, 65520, 1, "make -65520 of sample 0"}, {microtome.BFloat16, 0, 1e-39, "which bfloat16 can't hold"},
		{microtome.Float32, 0, 1e-39, "which float32 can't hold"}, {microtome.Float32, 1e308, 1e-308, "make -Inf of sample 0"}, {microtome.Uint8, 0, 1, "which uint8 can't hold"},
	} {
		_, err := microtome.NewLUT(c.typ, [3]float64{0, c.mean, 0}, [3]float64{1, c.std, 1})
		if c.typ == microtome.Uint8 {
			_, err = microtome.NewLUT(c.typ, [3]float64{}, [3]float64{1, 1, 1})
		}
		if !errors.Is(err, microtome.ErrMalformed) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, mean %v, std %v: %v, want %q", c.typ, c.mean, c.std, err, c.says)
		}
	}
}
