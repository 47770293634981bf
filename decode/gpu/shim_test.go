//go:build cgo && linux

package gpu

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/shim"
	"github.com/microtome/microtome/synth/jpegenc"
)

// shimsEnv names a folder of shims to test over the real CUDA, instead of ones that
// are built over the fakes.
const shimsEnv = "MICROTOME_SHIMS"

// shims are the AMD half over the NVIDIA libraries. Faults go by those libraries'
// names.
func shims(t *testing.T) *fakeVendor {
	v := &fakeVendor{name: "amd", dir: os.Getenv(shimsEnv), version: "7.0.0", kernels: "gfx942", files: []string{"hip.h"},
		calls: strings.NewReplacer()}
	if v.dir == "" {
		v.dir = t.TempDir()
		if err := shim.Fakes(v.dir); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func shimsOverFakes(t *testing.T) *fakeVendor {
	if os.Getenv(shimsEnv) != "" {
		t.Skip("faults can't be ordered of a real GPU")
	}
	return shims(t)
}

func TestShims(t *testing.T) {
	v := shims(t)
	t.Run("pixels", func(t *testing.T) { testPixelsEqualTheCPUs(t, v) })
	t.Run("corrupt tiles", func(t *testing.T) { testCorruptTiles(t, v) })
	t.Run("make", func(t *testing.T) { testMake(t, v) })
	t.Run("make refuses", func(t *testing.T) { testMakeRefuses(t, v) })
	t.Run("many at once", func(t *testing.T) { manyAtOnce(t, v) })
}

// manyAtOnce has all lanes decode tiles of several kinds and sizes, so that batches
// are of every count and filled up with repeats.
func manyAtOnce(t *testing.T, v *fakeVendor) {
	o := testOptions(t, v, "")
	o.Lanes, o.Batch = 4, 0
	e := opened(t, o)
	before := e.Stats().Decoded // the proof's
	var jobs []microtome.Job
	for i := range 60 {
		for k, s := range []jpegenc.Sampling{jpegenc.S420, jpegenc.S422, jpegenc.S440, jpegenc.S444} {
			jobs = append(jobs, microtome.Job{Tile: tileOf(t, 256-16*(i%3), 240+8*k, uint64(i), microtome.ColorYCbCr,
				jpegenc.Options{Color: jpegenc.YCbCr, Sampling: s})})
		}
	}
	for range 3 {
		for i, r := range loadAll(e, jobs) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if diff, err := e.compare(context.Background(), &jobs[i].Tile, r.Pixels); err != nil || diff != 0 {
				t.Errorf("tile %d: %d off, %v", i, diff, err)
			}
			r.Pixels.Release()
		}
	}
	if st := e.Stats(); st.Decoded-before != int64(3*len(jobs)) {
		t.Errorf("%d of %d tiles were decoded by the device: %+v", st.Decoded-before, 3*len(jobs), st.Ineligible)
	}
}

// What nvJPEG and CUDA say reaches the engine as rocJPEG's and HIP's.
func TestShimsPassFaultsOn(t *testing.T) {
	v := shimsOverFakes(t)
	for _, order := range []string{"nvjpegDecodeBatched:12:6", "nvjpegDecodeBatched:12:crash", "nvjpegDecodeBatchedInitialize:9:8",
		"nvjpegJpegStateCreate:4:5", "cuMemcpyDtoHAsync:12:1", "cuLaunchKernel:30:719"} {
		t.Run(order, func(t *testing.T) {
			e := opened(t, testOptions(t, v, order))
			tile := tileOf(t, 256, 256, 9, microtome.ColorYCbCr, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420})
			for i := range 20 {
				r := loadAll(e, []microtome.Job{{Tile: tile}})[0]
				if r.Err != nil {
					waitReady(t, e)
					continue
				}
				if diff, err := e.compare(context.Background(), &tile, r.Pixels); err == nil && diff != 0 {
					t.Errorf("tile %d is %d off", i, diff)
				}
				r.Pixels.Release()
				waitReady(t, e)
			}
		})
	}
	for order, why := range map[string]string{"cuInit:1:100": "HIP error 100", "nvjpegGetHardwareDecoderInfo:1+:1": "rocJPEG error -10",
		"nvjpegDecodeBatched:1+:6": "did not decode", "nvjpegDecodeBatched:2:flip": "1 off"} {
		e, err := Open(testOptions(t, v, order))
		if err == nil {
			e.Close()
			t.Errorf("%s: the engine started", order)
		} else if !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", order, err)
		}
	}
}
