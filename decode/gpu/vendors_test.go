//go:build cgo && linux

package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/fake"
	"github.com/microtome/microtome/decode/gpu/wire"
	"github.com/microtome/microtome/synth/jpegenc"
)

// fakeVendor is a vendor's fake libraries.
type fakeVendor struct {
	name, dir string
	// version is the driver's, kernels what the embedded ones are compiled for.
	version, kernels string
	// files of package native list what the engine calls.
	files []string
	// calls are the vendor's names of what faults are ordered for: @decode.
	calls *strings.Replacer
}

// fakeVendors are made by TestMain.
var fakeVendors []*fakeVendor

// orders are what faults are ordered for, whoever the vendor is.
var orders = []string{"@init", "@count", "@device", "@module", "@alloc", "@pin", "@sync", "@launch", "@tohost", "@decoder", "@decode"}

// names are a vendor's functions in the order of orders.
func names(functions ...string) *strings.Replacer {
	var pairs []string
	for i, f := range functions {
		pairs = append(pairs, orders[i], f)
	}
	return strings.NewReplacer(pairs...)
}

func fakes(dir string) (out []*fakeVendor, err error) {
	for _, v := range []*fakeVendor{
		{
			name: "nvidia", version: fake.DriverVersion, kernels: "sm_75", files: []string{"cuda.c"},
			calls: names("cuInit", "cuDeviceGetCount", "cuDevicePrimaryCtxRetain", "cuModuleLoadData", "cuMemAlloc", "cuMemHostRegister",
				"cuStreamSynchronize", "cuLaunchKernel", "cuMemcpyDtoHAsync", "nvjpegCreateEx", "nvjpegDecodeBatched"),
		},
		{
			name: "amd", version: fake.HIPVersion, kernels: "gfx90a", files: []string{"hip.h"},
			calls: names("hipInit", "hipGetDeviceCount", "hipMemGetInfo", "hipModuleLoadData", "hipMalloc", "hipHostRegister",
				"hipStreamSynchronize", "hipModuleLaunchKernel", "hipMemcpyDtoHAsync", "rocJpegCreate", "rocJpegDecodeBatched"),
		},
	} {
		v.dir = filepath.Join(dir, v.name)
		if err = errors.Join(os.Mkdir(v.dir, 0o755), fake.Libraries(v.name, v.dir)); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// eachVendor runs a test on every vendor's fakes, at once.
func eachVendor(t *testing.T, test func(t *testing.T, v *fakeVendor)) {
	t.Helper()
	for _, v := range fakeVendors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			test(t, v)
		})
	}
}

// functions are what the engine calls of the vendor's libraries.
func (v *fakeVendor) functions(t *testing.T) (names []string) {
	t.Helper()
	for _, file := range v.files {
		text, err := os.ReadFile(filepath.Join("native", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\s+X\(((?:cu|nvjpeg|hip[A-Z]|rocJpeg)\w+),`).FindAllSubmatch(text, -1) {
			names = append(names, strings.TrimSuffix(string(m[1]), "_v2"))
		}
	}
	if len(names) < 20 {
		t.Fatalf("%s: only %q are called", v.name, names)
	}
	return names
}

// often are the functions that are called for every tile.
var often = regexp.MustCompile(`Memcpy|Memset|Launch|StreamSync|SetCurrent|SetDevice$|DecodeBatched$|Jpeg(Stream|GetImage)`)

// Every function that the engine calls may fail, crash or hang, at its first call and
// at a later one: each ends in the right pixels or in a refusal, in time.
func TestEveryCallMayFail(t *testing.T) {
	tiles := []microtome.Tile{
		tileOf(t, 256, 256, 9, microtome.ColorYCbCr, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420}),
		tileOf(t, 240, 240, 1, microtome.ColorRGB, jpegenc.Options{Color: jpegenc.RGB}),
		tileOf(t, 256, 128, 2, microtome.ColorYCbCr, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S422}),
	}
	eachVendor(t, func(t *testing.T, v *fakeVendor) {
		var cases errgroup.Group
		cases.SetLimit(12) // most of them wait
		for _, f := range v.functions(t) {
			for _, nth := range []string{":1:", ":14:"} {
				for _, what := range []string{"1", "crash", "hang"} {
					if nth != ":1:" && (testing.Short() || !often.MatchString(f)) {
						continue
					}
					o := testOptions(t, v, f+nth+what)
					if nth != ":1:" {
						o.Env = append(o.Env, fake.Once+"="+filepath.Join(t.TempDir(), "once"))
					}
					cases.Go(func() error {
						if err := faulty(&o, tiles); err != nil {
							t.Errorf("%s%s%s: %v", f, nth, what, err)
						}
						return nil
					})
				}
			}
		}
		_ = cases.Wait()
	})
}

// faulty opens an engine on libraries with a fault, has it decode, and says what
// was not as it should be.
func faulty(o *Options, tiles []microtome.Tile) (wrong error) {
	const limit = 5 * time.Second
	say := func(format string, args ...any) { wrong = errors.Join(wrong, fmt.Errorf(format, args...)) }
	start := time.Now()
	o.Arena, o.Ring, o.Start, o.Timeout, o.Quiet = leastArena, 16<<20, 1500*time.Millisecond, 700*time.Millisecond, true
	e, err := Open(*o)
	if d := time.Since(start); d > limit {
		say("the start took %v", d)
	}
	if err != nil {
		if len(err.Error()) < 20 {
			say("it is refused, and nobody knows why: %w", err)
		}
		return wrong
	}
	for i := range 4 * len(tiles) {
		start = time.Now()
		if err := right(e, &tiles[i%len(tiles)]); err != nil {
			say("tile %d: %w", i, err)
		}
		if d := time.Since(start); d > limit {
			say("tile %d took %v", i, d)
		}
		for e.Stats().State == "starting" && time.Since(start) < 2*limit {
			time.Sleep(5 * time.Millisecond)
		}
	}
	st := e.Stats()
	if again := strings.Contains(strings.Join(o.Env, " "), fake.Once); st.State != "ready" && (again || st.State != "off" || st.Why == "") {
		say("in the end: %+v", st)
	}
	if err := e.Close(); err != nil {
		say("closed: %w", err)
	}
	return wrong
}

// right has an engine load a tile, and says when it is neither the CPU's nor
// refused.
func right(e *Engine, tile *microtome.Tile) error {
	r := loadAll(e, []microtome.Job{{Tile: *tile}})[0]
	err := r.Err
	if err == nil {
		defer r.Pixels.Release()
		var diff int
		if diff, err = e.compare(context.Background(), tile, r.Pixels); diff != 0 {
			return fmt.Errorf("%d off", diff)
		}
	}
	if errors.Is(err, microtome.ErrDeviceLost) || errors.Is(err, microtome.ErrBusy) {
		return nil
	}
	return err
}

// A library without one of the functions is refused by the function's name.
func TestMissingFunctions(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	eachVendor(t, func(t *testing.T, v *fakeVendor) {
		all := v.functions(t)
		symbol, dir := all[len(all)-1], t.TempDir()
		if err := fake.Libraries(v.name, dir, symbol); err != nil {
			t.Fatal(err)
		}
		s := Look(context.Background(), []string{self}, []string{workerEnv + "=1"}, v.name, dir)
		if s.Trouble == nil || s.Trouble.Kind != wire.Missing || !strings.Contains(s.Trouble.Err.Error(), "has no "+symbol) {
			t.Errorf("without %s: %v", symbol, s.Trouble)
		}
	})
}
