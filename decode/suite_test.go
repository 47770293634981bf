package decode_test

import (
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/decodetest"
)

func TestSuite(t *testing.T) {
	d := decode.NewCPU(decode.Options{})
	decodetest.Run(t, func() microtome.Decoder { return decode.NewCPU(decode.Options{Workers: 2}) }, decodetest.Options{Exact: d.Exact()})
}
