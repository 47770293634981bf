//go:build cgo && linux

package tiles_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/decode/gpu/fake"
	"github.com/microtome/microtome/formats"
	"github.com/microtome/microtome/synth"
	"github.com/microtome/microtome/synth/tiffw"
	"github.com/microtome/microtome/tiles"
)

// fakes builds the stand-ins once, in a folder for each vendor. It is left to the
// system to clean.
var fakes = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "microtome-fake")
	for _, v := range fake.Vendors() {
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, v), 0o755)
		}
		if err == nil {
			err = fake.Libraries(v, filepath.Join(dir, v))
		}
	}
	return dir, err
})

// eachVendor runs a test for every vendor.
func eachVendor(t *testing.T, test func(t *testing.T, vendor string)) {
	t.Helper()
	for _, v := range fake.Vendors() {
		t.Run(v, func(t *testing.T) { test(t, v) })
	}
}

// fakeDevice is the engine over stand-ins for a vendor's libraries, in this
// process.
func fakeDevice(t *testing.T, vendor string, cpu microtome.Decoder, change func(*gpu.Options)) *gpu.Engine {
	t.Helper()
	dir, err := fakes()
	if err != nil {
		t.Fatal(err)
	}
	o := gpu.Options{Vendor: vendor, Libraries: filepath.Join(dir, vendor), CPU: cpu, Arena: 256 << 20, Ring: 256 << 20, Lanes: 2, Batch: 8, Beside: -1}
	if change != nil {
		change(&o)
	}
	e, err := gpu.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// opened is a synthetic slide.
func openedSlide(t *testing.T, name string, spec synth.Spec) microtome.Slide {
	t.Helper()
	b := tiffw.NewBuffer()
	if err := synth.Write(b, spec); err != nil {
		t.Fatal(err)
	}
	s, err := formats.Open(t.Context(), &memory{bytes.NewReader(b.Bytes()), name}, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// randomBatch is patches of one size anywhere on and around a slide, at levels
// and between them.
func randomBatch(s microtome.Slide, rng *rand.Rand, n int) []tiles.Patch {
	w, h := 1+rng.IntN(200), 1+rng.IntN(200)
	out := make([]tiles.Patch, n)
	l0 := s.Info().Levels[0]
	for i := range out {
		q := tiles.Region{L0X: rng.Int64N(l0.Width+200) - 100, L0Y: rng.Int64N(l0.Height+200) - 100, Width: w, Height: h}
		switch rng.IntN(4) {
		case 0:
			q.Scale = tiles.Scale{Value: float64(rng.IntN(len(s.Info().Levels)))}
		case 1:
			q.Scale = tiles.Scale{Kind: tiles.ByDownsample, Value: 0.6 + 4*rng.Float64()}
		}
		out[i] = tiles.Patch{Slide: s, Region: q}
		if rng.IntN(3) == 0 {
			out[i].Background = &microtome.RGB{R: 10, G: 20, B: 30}
		}
	}
	return out
}

// For every kind of slide, a batch made on a device has the CPU's pixels and
// errors.
func TestDeviceBatchesEqualTheCPUs(t *testing.T) { eachVendor(t, testDeviceBatchesEqualTheCPUs) }

func testDeviceBatchesEqualTheCPUs(t *testing.T, vendor string) {
	for name, spec := range map[string]synth.Spec{
		"svs rgb":    {Codec: synth.JPEGRGB},
		"svs ycc":    {Codec: synth.JPEG},
		"svs sparse": {Codec: synth.JPEG, Sparse: true},
		"tiff":       {Format: synth.TIFF, Layout: synth.SubIFDs},
		"deflate":    {Format: synth.TIFF, Codec: synth.Deflate, Predictor: true},
		"strips":     {Format: synth.TIFF, Codec: synth.LZW, RowsPerStrip: 16},
		"ome planes": {Format: synth.OME, Codec: synth.Zstd, SizeC: 2},
	} {
		t.Run(name, func(t *testing.T) {
			spec.Width, spec.Height, spec.Levels = 700, 530, 2
			s := openedSlide(t, name, spec)
			cpu := decode.NewCPU(decode.Options{})
			defer cpu.Close()
			d := fakeDevice(t, vendor, cpu, nil)
			o := tiles.Options{Decoder: cpu, Encoder: cpu, PixelBytes: 8 << 20, Background: microtome.RGB{R: 255, G: 255, B: 255}}
			plain := newReader(t, o)
			o.Devices = devices(d)
			r := newReader(t, o)
			rng := rand.New(rand.NewPCG(1, 2))
			for range 12 {
				sameBatch(t, plain, r, randomBatch(s, rng, 9), tiles.PatchOptions{Channels: []int{0, 1, 3}[rng.IntN(3)]})
			}
			if d.Stats().Made == 0 {
				t.Error("no patch came from the device")
			}
			r.Close()
			if st := d.Stats(); st.UsedBytes != 0 || st.Strikes != 0 {
				t.Errorf("%d bytes in use at the end, %d strikes", st.UsedBytes, st.Strikes)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func devices(list ...microtome.Device) []microtome.Device { return list }

func newReader(t *testing.T, o tiles.Options) *tiles.Reader {
	t.Helper()
	r, err := tiles.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sameBatch holds two readers' answers to a batch together, and returns how many
// of the second's came from a device.
func sameBatch(t *testing.T, plain, r *tiles.Reader, batch []tiles.Patch, o tiles.PatchOptions) (gpus int) {
	t.Helper()
	want, ch, err := plain.Patches(t.Context(), batch, o)
	if err != nil {
		t.Fatal(err)
	}
	got, gotCh, err := r.Patches(t.Context(), batch, o)
	if err != nil || gotCh != ch {
		t.Fatalf("%d channels, want %d: %v", gotCh, ch, err)
	}
	for i := range want {
		if (want[i].Err == nil) != (got[i].Err == nil) {
			t.Errorf("item %d: %v, on the CPU %v", i, got[i].Err, want[i].Err)
		}
		if want[i].Err != nil {
			continue
		}
		a, b := want[i].Answer, got[i].Answer
		if b.Engine == "gpu" {
			gpus++
		}
		b.Engine, b.CacheHit, a.Engine, a.CacheHit = "", false, "", false
		if a.Made != b.Made || a.Level != b.Level || a.Downsample != b.Downsample || a.Width != b.Width || a.Channels != b.Channels {
			t.Errorf("item %d: %+v, on the CPU %+v", i, b, a)
		}
		if !bytes.Equal(rowsOf(want[i].Pixels), rowsOf(got[i].Pixels)) {
			t.Errorf("item %d (%+v): the device's pixels differ", i, batch[i].Region)
		}
		want[i].Pixels.Release()
		got[i].Pixels.Release()
	}
	return gpus
}

func rowsOf(px microtome.Pixels) []byte {
	pix, stride, _ := px.Host()
	n := px.Width() * px.Channels()
	var out []byte
	for y := range px.Height() {
		out = append(out, pix[y*stride:][:n]...)
	}
	return out
}

// A device that dies under many callers costs nobody an answer; one whose memory
// is small gives up what it keeps.
func TestDeviceUnderLoad(t *testing.T) { eachVendor(t, testDeviceUnderLoad) }

func testDeviceUnderLoad(t *testing.T, vendor string) {
	spec := synth.Spec{Codec: synth.JPEG, Width: 3000, Height: 2400, Levels: 2}
	s := openedSlide(t, "load", spec)
	cpu := decode.NewCPU(decode.Options{Queue: 1 << 16})
	defer cpu.Close()
	d := fakeDevice(t, vendor, cpu, func(o *gpu.Options) { o.Arena = 128 << 20 })
	o := tiles.Options{Decoder: cpu, Encoder: cpu, PixelBytes: 8 << 20, Background: microtome.RGB{R: 255}}
	plain := newReader(t, o)
	o.Devices = devices(d)
	r := newReader(t, o)
	var all sync.WaitGroup
	for k := range 6 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(k), 9))
			for range 4 {
				sameBatch(t, plain, r, randomBatch(s, rng, 6), tiles.PatchOptions{})
			}
		})
	}
	all.Wait()
	r.Close()
	if st := d.Stats(); st.UsedBytes != 0 || st.Decoded == 0 {
		t.Errorf("%d bytes in use at the end, %d decoded", st.UsedBytes, st.Decoded)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	batch := randomBatch(s, rand.New(rand.NewPCG(5, 5)), 4)
	if _, _, _, err := r.DevicePatches(t.Context(), batch, tiles.DeviceOptions{}); !errors.Is(err, microtome.ErrDeviceLost) {
		t.Errorf("a batch on a closed device: %v", err)
	}
}

// Of two devices each slide has one, and a batch over many slides keeps its order.
func TestSlidesHashToDevices(t *testing.T) {
	eachVendor(t, func(t *testing.T, vendor string) { testSlidesHashToDevices(t, vendor, vendor) })
	t.Run("mixed", func(t *testing.T) { testSlidesHashToDevices(t, "nvidia", "amd") })
}

func testSlidesHashToDevices(t *testing.T, first, second string) {
	cpu := decode.NewCPU(decode.Options{})
	defer cpu.Close()
	a := fakeDevice(t, first, cpu, nil)
	b := fakeDevice(t, second, cpu, func(o *gpu.Options) { o.Index = 1 })
	o := tiles.Options{Decoder: cpu, Encoder: cpu, PixelBytes: 8 << 20}
	plain := newReader(t, o)
	o.Devices = devices(a, b)
	r := newReader(t, o)
	var batch []tiles.Patch
	for i := range 12 {
		s := openedSlide(t, string(rune('a'+i)), synth.Spec{Codec: synth.JPEG, Width: 300, Height: 300, Levels: 1, Seed: uint32(i)})
		for k := range 3 {
			batch = append(batch, tiles.Patch{Slide: s, Region: tiles.Region{L0X: int64(40 * k), L0Y: 17, Width: 90, Height: 80}})
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(batch), func(i, k int) { batch[i], batch[k] = batch[k], batch[i] })
	for range 2 {
		if n := sameBatch(t, plain, r, batch, tiles.PatchOptions{}); n != len(batch) {
			t.Errorf("%d of %d patches came from devices", n, len(batch))
		}
	}
	decoded := a.Stats().Decoded + b.Stats().Decoded - 9 - 9 // those that prove the engines
	if a.Stats().Decoded <= 9 || b.Stats().Decoded <= 9 || decoded > 12*4 {
		t.Errorf("decoded by one %d, by the other %d: each slide's tiles are one's", a.Stats().Decoded, b.Stats().Decoded)
	}
	r.Close()
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}
