package route

import (
	"strconv"

	"github.com/microtome/microtome"
)

// floats reads the type of the samples, and what makes floats of them.
func (in *batchJSON) floats(b *Batch) error {
	switch in.Type {
	case "", "uint8":
		if in.Mean != nil || in.Std != nil {
			return malformed("mean and std are for a dtype of floats, not for uint8")
		}
		return nil
	case "float16":
		b.Type = microtome.Float16
	case "bfloat16":
		b.Type = microtome.BFloat16
	case "float32":
		b.Type = microtome.Float32
	default:
		return &microtome.Unsupported{Tag: "dtype", Value: strconv.Quote(shorten(in.Type))}
	}
	switch {
	case b.Format == "jpeg" || b.Format == "png":
		return malformed("dtype %s is for arrays, not for %s", b.Type, b.Format)
	case b.Format == "npy" && b.Type == microtome.BFloat16:
		return malformed("NumPy has no bfloat16: ask for format raw, or for float16 or float32")
	}
	mean, err := each("mean", in.Mean, 0, b)
	if err != nil {
		return err
	}
	std, err := each("std", in.Std, 1, b)
	if err != nil {
		return err
	}
	b.LUT, err = microtome.NewLUT(b.Type, mean, std)
	return err
}

// each is a number for each channel: one holds for all, three say that there are
// three channels.
func each(name string, list []*float64, without float64, b *Batch) (each [3]float64, err error) {
	switch {
	case list == nil:
		return [3]float64{without, without, without}, nil
	case len(list) != 1 && len(list) != 3:
		return each, malformed("%s has %d numbers: one for all channels, or three", name, len(list))
	case len(list) == 3 && b.Channels == 1:
		return each, malformed("%s has 3 numbers for 1 channel", name)
	case len(list) == 3:
		b.Channels = 3
	}
	for c := range each {
		v := list[c%len(list)]
		if v == nil {
			return each, malformed("%s holds null", name)
		}
		each[c] = *v
	}
	return each, nil
}
