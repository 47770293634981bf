//go:build cgo && linux

package tiles_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/formats"
	"github.com/microtome/microtome/formats/source"
	"github.com/microtome/microtome/tiles"
)

// BenchmarkDeviceHost is what a batch on a device costs the host: the device
// does nothing. MICROTOME_BENCH_SLIDE names a slide.
func BenchmarkDeviceHost(b *testing.B) {
	path := os.Getenv("MICROTOME_BENCH_SLIDE")
	if path == "" {
		b.Skip("MICROTOME_BENCH_SLIDE is not set")
	}
	src, err := source.OpenFile(path)
	if err != nil {
		b.Fatal(err)
	}
	s, err := formats.Open(b.Context(), src, formats.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	cpu := decode.NewCPU(decode.Options{})
	defer cpu.Close()
	dir, err := fakes()
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv("MICROTOME_FAKE", "nvjpegDecodeBatched:40+:skip,cuLaunchKernel:80+:skip")
	d, err := gpu.Open(gpu.Options{Vendor: "nvidia", Libraries: filepath.Join(dir, "nvidia"), CPU: cpu, Arena: 1 << 30, Ring: 256 << 20, Beside: -1, Sample: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	var list []tiles.Patch
	for i := range 24 * 24 {
		list = append(list, tiles.Patch{Slide: s, Region: tiles.Region{L0X: int64(9000 + i%24*256), L0Y: int64(9000 + i/24*256), Width: 256, Height: 256}})
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := tiles.New(tiles.Options{Decoder: cpu, Encoder: cpu, Devices: devices(d)})
		if err != nil {
			b.Fatal(err)
		}
		var all sync.WaitGroup
		for k := range 9 {
			all.Go(func() {
				a, _, _, err := r.DevicePatches(b.Context(), list[k*64:(k+1)*64], tiles.DeviceOptions{})
				if err != nil {
					b.Error(err)
					return
				}
				a.Release()
			})
		}
		all.Wait()
		r.Close()
	}
	b.ReportMetric(float64(b.N*576)/b.Elapsed().Seconds(), "patches/s")
}
