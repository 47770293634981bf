//go:build cgo && linux

package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/gpu/fake"
	"github.com/microtome/microtome/synth/jpegenc"
)

// The test binary is its own worker.
const workerEnv = "MICROTOME_TEST_GPU_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		if err := Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "microtome-fake")
	if err == nil && os.Getenv(shimsEnv) == "" { // a GPU's machine may have no compiler
		fakeVendors, err = fakes(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// testOptions are an engine over a vendor's fakes, in a child.
func testOptions(t testing.TB, v *fakeVendor, faults string) Options {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cpu := decode.NewCPU(decode.Options{Workers: 2})
	t.Cleanup(func() { cpu.Close() })
	return Options{
		Vendor: v.name, Libraries: v.dir, CPU: cpu, Worker: []string{self},
		Env: []string{workerEnv + "=1", fake.Env + "=" + v.calls.Replace(faults)}, Arena: 256 << 20, Ring: 64 << 20, Lanes: 2, Batch: 8, Beside: -1,
		Timeout: 2 * time.Second,
	}
}

func opened(t testing.TB, o Options) *Engine {
	t.Helper()
	e, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// tileOf is a tile of synth's.
func tileOf(t testing.TB, w, h int, seed uint64, color microtome.Color, o jpegenc.Options) microtome.Tile {
	t.Helper()
	ch := 3
	if o.Color == jpegenc.Gray {
		ch = 1
	}
	enc, err := jpegenc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	data, err := enc.Encode(nil, busy(w, h, ch, seed), w, h, w*ch)
	if err != nil {
		t.Fatal(err)
	}
	return microtome.Tile{Data: data, Codec: microtome.CodecJPEG, Color: color, Width: w, Height: h,
		VisibleWidth: w, VisibleHeight: h, StreamHeight: h, Samples: ch, Bits: 8, Predictor: 1, FillOrder: 1}
}

// loadAll loads tiles and waits for all of them.
func loadAll(e *Engine, jobs []microtome.Job) []microtome.Result {
	out := make([]microtome.Result, len(jobs))
	var wg sync.WaitGroup
	wg.Add(len(jobs))
	e.Load(context.Background(), jobs, func(i int, r microtome.Result) {
		out[i] = r
		wg.Done()
	})
	wg.Wait()
	return out
}

// kindsOfTiles are a tile of each kind that an engine takes, and of some that it
// doesn't.
func kindsOfTiles(t testing.TB) (on, off map[string]microtome.Tile) {
	ycc := func(s jpegenc.Sampling, w, h int) microtome.Tile {
		return tileOf(t, w, h, 7, microtome.ColorYCbCr, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: s})
	}
	on = map[string]microtome.Tile{
		"rgb 4:4:4":     tileOf(t, 240, 240, 1, microtome.ColorRGB, jpegenc.Options{Color: jpegenc.RGB, Quality: 30}),
		"rgb 4:2:0":     tileOf(t, 256, 256, 2, microtome.ColorRGB, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420}),
		"4:4:4":         ycc(jpegenc.S444, 200, 120),
		"4:2:2":         ycc(jpegenc.S422, 256, 131),
		"4:2:0":         ycc(jpegenc.S420, 256, 256),
		"4:2:0 odd MCU": ycc(jpegenc.S420, 250, 66),
		"4:4:0":         ycc(jpegenc.S440, 129, 256),
		"grey":          tileOf(t, 256, 100, 3, microtome.ColorGray, jpegenc.Options{Color: jpegenc.Gray}),
		"white is zero": tileOf(t, 256, 100, 3, microtome.ColorGrayWhite, jpegenc.Options{Color: jpegenc.Gray}),
		"restarts":      tileOf(t, 256, 256, 4, microtome.ColorYCbCr, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420, Restart: 7}),
		"q1":            tileOf(t, 64, 64, 5, microtome.ColorYCbCr, jpegenc.Options{Color: jpegenc.YCbCr, Quality: 1}),
		"q100":          tileOf(t, 512, 512, 6, microtome.ColorYCbCr, jpegenc.Options{Color: jpegenc.YCbCr, Quality: 100}),
	}
	edge := ycc(jpegenc.S420, 256, 256)
	edge.VisibleWidth, edge.VisibleHeight = 100, 31
	on["edge"] = edge
	off = map[string]microtome.Tile{
		"small":     ycc(jpegenc.S420, 48, 48),
		"4:1:1":     ycc(jpegenc.S411, 256, 256),
		"odd 4:2:0": ycc(jpegenc.S420, 255, 255),
	}
	return on, off
}

// Every kind of tile has the CPU's pixels, whoever decoded it.
func TestPixelsEqualTheCPUs(t *testing.T) { eachVendor(t, testPixelsEqualTheCPUs) }

func testPixelsEqualTheCPUs(t *testing.T, v *fakeVendor) {
	on, off := kindsOfTiles(t)
	for _, inProcess := range []bool{true, false} {
		t.Run(fmt.Sprintf("in process %t", inProcess), func(t *testing.T) {
			o := testOptions(t, v, "")
			if inProcess {
				o.Worker = nil
			}
			e := opened(t, o)
			for name, tile := range on {
				if diff, err := e.difference(context.Background(), &tile); err != nil || diff != 0 {
					t.Errorf("%s: %d off, %v", name, diff, err)
				}
			}
			for name, tile := range off {
				before := e.count.decoded.Load()
				r := loadAll(e, []microtome.Job{{Tile: tile}})[0]
				if r.Err != nil {
					t.Errorf("%s: %v", name, r.Err)
					continue
				}
				if diff, err := e.compare(context.Background(), &tile, r.Pixels); err != nil || diff != 0 || e.count.decoded.Load() != before {
					t.Errorf("%s: %d off, %v, decoded %d", name, diff, err, e.count.decoded.Load()-before)
				}
				r.Pixels.Release()
			}
			if n := len(e.Stats().Ineligible); n != len(off) {
				t.Errorf("%d reasons for %d tiles: %v", n, len(off), e.Stats().Ineligible)
			}
			if used, n := e.session.Load().inUse(); used != 0 {
				t.Errorf("%d slots (%d bytes) are still in use", n, used)
			}
		})
	}
}

// What libjpeg-turbo would warn of never comes from the device: it is the CPU's
// error; a changed bit that breaks nothing has the CPU's pixels.
func TestCorruptTiles(t *testing.T) { eachVendor(t, testCorruptTiles) }

func testCorruptTiles(t *testing.T, v *fakeVendor) {
	e := opened(t, testOptions(t, v, ""))
	cpu := e.o.CPU
	whole := tileOf(t, 256, 256, 9, microtome.ColorYCbCr, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420})
	bad := 0
	for i := range 400 {
		tile := whole
		tile.Data = bytes.Clone(whole.Data)
		at := 700 + i*(len(tile.Data)-702)/400
		switch i % 4 {
		case 0:
			tile.Data[at] ^= 1 << (i % 8)
		case 1:
			tile.Data = append(tile.Data[:at], tile.Data[at+1:]...)
		case 2:
			tile.Data = append(bytes.Clone(tile.Data[:at]), 0xFF, 0xD9)
		case 3:
			tile.Data[at], tile.Data[at+1] = 0xFF, byte(i)
		}
		want := cpu.DecodeBatch(context.Background(), []microtome.Job{{Tile: tile}})[0]
		got := loadAll(e, []microtome.Job{{Tile: tile}})[0]
		if (want.Err == nil) != (got.Err == nil) || want.Err != nil && !errors.Is(got.Err, microtome.ErrCorrupt) {
			t.Fatalf("%d: the CPU says %v, the engine %v", i, want.Err, got.Err)
		}
		if want.Err != nil {
			bad++
			continue
		}
		want.Pixels.Release()
		if diff, err := e.compare(context.Background(), &tile, got.Pixels); err != nil || diff != 0 {
			t.Errorf("%d: %d off, %v", i, diff, err)
		}
		got.Pixels.Release()
	}
	if bad < 200 {
		t.Errorf("only %d of 400 tiles were corrupt", bad)
	}
}

// made is a batch in host memory.
func made(t *testing.T, e *Engine, b microtome.DeviceBatch) []byte {
	t.Helper()
	b.Host = true
	a, err := e.Make(context.Background(), &b)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	return bytes.Clone(a.Host())
}

// Layouts, sample types and colours of what is made.
func TestMake(t *testing.T) { eachVendor(t, testMake) }

func testMake(t *testing.T, v *fakeVendor) {
	e := opened(t, testOptions(t, v, ""))
	tile := tileOf(t, 240, 240, 1, microtome.ColorRGB, jpegenc.Options{Color: jpegenc.RGB})
	px := loadAll(e, []microtome.Job{{Tile: tile}})[0].Pixels
	defer px.Release()
	want := e.o.CPU.DecodeBatch(context.Background(), []microtome.Job{{Tile: tile}})[0].Pixels
	defer want.Release()
	pix, stride, _ := want.Host()
	const w, h = 32, 20
	b := microtome.DeviceBatch{Width: w, Height: h, Channels: 3, Patches: []microtome.DevicePatch{
		{Covered: true, Pieces: []microtome.DevicePiece{{Pixels: px, From: image.Rect(5, 7, 5+w, 7+h)}}},
		{Fill: microtome.RGB{R: 1, G: 2, B: 3}, Pieces: []microtome.DevicePiece{{Pixels: px, From: image.Rect(0, 0, 10, 4), X: 22, Y: 16}}},
	}}
	nhwc := made(t, e, b)
	at := func(p, x, y, c int) byte {
		if p == 0 {
			return pix[(y+7)*stride+3*(x+5)+c]
		}
		if x >= 22 && y >= 16 {
			return pix[(y-16)*stride+3*(x-22)+c]
		}
		return byte(c + 1)
	}
	b.Layout = microtome.NCHW
	nchw := made(t, e, b)
	var lut [3][256]uint32
	for c := range lut {
		for v := range lut[c] {
			lut[c][v] = uint32(1000*c + v)
		}
	}
	b.LUT, b.Type = &lut, microtome.Float16
	half := made(t, e, b)
	b.Layout, b.Type = microtome.NHWC, microtome.Float32
	full := made(t, e, b)
	for p := range 2 {
		for y := range h {
			for x := range w {
				for c := range 3 {
					v := at(p, x, y, c)
					i, k := ((p*h+y)*w+x)*3+c, ((p*3+c)*h+y)*w+x
					if nhwc[i] != v || nchw[k] != v || int(half[2*k])|int(half[2*k+1])<<8 != 1000*c+int(v) ||
						int(full[4*i])|int(full[4*i+1])<<8 != 1000*c+int(v) {
						t.Fatalf("patch %d at %d,%d channel %d: %d, %d, …, want %d", p, x, y, c, nhwc[i], nchw[k], v)
					}
				}
			}
		}
	}
}

func TestMakeRefuses(t *testing.T) { eachVendor(t, testMakeRefuses) }

func testMakeRefuses(t *testing.T, v *fakeVendor) {
	e := opened(t, testOptions(t, v, ""))
	tile := tileOf(t, 64, 64, 1, microtome.ColorRGB, jpegenc.Options{Color: jpegenc.RGB})
	px := loadAll(e, []microtome.Job{{Tile: tile}})[0].Pixels
	defer px.Release()
	piece := func(r image.Rectangle, x, y int) []microtome.DevicePatch {
		return []microtome.DevicePatch{{Pieces: []microtome.DevicePiece{{Pixels: px, From: r, X: x, Y: y}}}}
	}
	for name, b := range map[string]microtome.DeviceBatch{
		"nothing":          {Width: 8, Height: 8, Channels: 3},
		"two channels":     {Width: 8, Height: 8, Channels: 2, Patches: piece(image.Rect(0, 0, 8, 8), 0, 0)},
		"beyond the tile":  {Width: 8, Height: 8, Channels: 3, Patches: piece(image.Rect(60, 0, 68, 8), 0, 0)},
		"floats, no table": {Width: 8, Height: 8, Channels: 3, Type: microtome.Float32, Patches: piece(image.Rect(0, 0, 8, 8), 0, 0)},
	} {
		if _, err := e.Make(context.Background(), &b); !errors.Is(err, microtome.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !e.Ready() {
		t.Error("a malformed batch cost the session")
	}
}

// Faults of the libraries and of the device end in the CPU's pixels or in a
// refusal, within seconds, and the engine works again.
func TestFaults(t *testing.T) { eachVendor(t, testFaults) }

func testFaults(t *testing.T, v *fakeVendor) {
	common := map[string]string{
		"@init:1:100":        v.calls.Replace("@init"),
		"@module:1:218":      "load the kernels",
		"@alloc:1:2":         "allocate the arena",
		"@pin:1:1":           "pin the ring",
		"@decode:2:flip":     "1 off",
		"@decode:5:stale":    "off libjpeg-turbo's",
		"@init:1:crash":      "ended before it was ready",
		"@sync:1:700":        "device lost",
		"@launch:1:719":      "device lost",
		"@decoder:2+:" + "9": "did not decode",
		"@decode:1+:1":       "did not decode",
	}
	own := map[string]map[string]string{
		"nvidia": {
			"cuDevicePrimaryCtxRetain:1:999":      "can't be opened: the driver's code 999",
			"cuDevicePrimaryCtxRetain:2:999":      "open the device: error 5, the driver's code 999",
			"nvjpegGetHardwareDecoderInfo:1:1":    "no JPEG engine",
			"nvjpegDecodeBatchedPreAllocate:1+:5": "did not decode",
			"nvjpegDecodeBatchedInitialize:1+:8":  "did not decode",
			"cores=0":                             "no JPEG engine",
		},
		"amd": {
			"hipGetDevicePropertiesR0600:1+:101": "can't be opened",
			"rocJpegStreamCreate:1+:-5":          "did not decode",
			"rocJpegStreamParse:1+:-3":           "did not decode",
			"cores=0":                            "did not answer", // rocJPEG never ends a batch
			"node=refused":                       "rocJpegCreate: rocJPEG error -2",
			"arch=gfx1036":                       "gfx1036",
		},
	}
	maps.Copy(common, own[v.name])
	for name, refused := range common {

		t.Run(name, func(t *testing.T) {
			start := time.Now()
			e, err := Open(testOptions(t, v, name))
			if err == nil {
				e.Close()
				t.Fatal("the engine started")
			}
			if !strings.Contains(err.Error(), refused) {
				t.Errorf("it says %q, not why (%s)", err, refused)
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("that took %v", d)
			}
		})
	}
}

// Faults after the start: the batch is redone on the CPU, and the engine comes
// back.
func TestFaultsUnderWay(t *testing.T) { eachVendor(t, testFaultsUnderWay) }

func testFaultsUnderWay(t *testing.T, v *fakeVendor) {
	sync := 25 // behind the proof
	if poisonFreed {
		sync = 70 // what is freed is waited for too
	}
	for _, name := range []string{
		"@decode:12:6", "@decode:12:crash", "@decode:12:hang", fmt.Sprintf("@sync:%d:700", sync), "@launch:30:719", "@tohost:12:1",
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions(t, v, name)
			o.Timeout = time.Second
			o.Env = append(o.Env, fake.Once+"="+filepath.Join(t.TempDir(), "once"))
			e := opened(t, o)
			tile := tileOf(t, 256, 256, 9, microtome.ColorYCbCr, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420})
			lost := 0
			for i := range 40 {
				start := time.Now()
				r := loadAll(e, []microtome.Job{{Tile: tile}})[0]
				if errors.Is(r.Err, microtome.ErrDeviceLost) {
					lost++
					waitReady(t, e)
					continue
				}
				if r.Err != nil {
					t.Fatalf("%d: %v", i, r.Err)
				}
				diff, err := e.compare(context.Background(), &tile, r.Pixels)
				r.Pixels.Release()
				if errors.Is(err, microtome.ErrDeviceLost) {
					lost++
					waitReady(t, e)
					continue
				}
				if err != nil || diff != 0 {
					t.Fatalf("%d: %d off, %v", i, diff, err)
				}
				if d := time.Since(start); d > 5*time.Second {
					t.Errorf("%d took %v", i, d)
				}
			}
			st := e.Stats()
			if st.Strikes == 0 && st.Ineligible["the device refused the batch"] == 0 {
				t.Errorf("the fault never came: %+v", st)
			}
			if lost > 4 {
				t.Errorf("%d of 40 were lost", lost)
			}
		})
	}
}

func waitReady(t *testing.T, e *Engine) {
	t.Helper()
	for range 1000 {
		st := e.Stats()
		if st.State == "ready" {
			return
		}
		if st.State == "off" {
			t.Fatalf("it stays off after %d strikes: %s", st.Strikes, st.Why)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the engine did not come back")
}
