//go:build cgo && linux

package gpu

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/microtome/microtome"
	"github.com/microtome/microtome/decode/gpu/fake"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// amdFakes are AMD's libraries in a folder of their own, without some functions.
func amdFakes(t *testing.T, without ...string) *fakeVendor {
	t.Helper()
	v := *fakeVendors[1]
	v.dir = t.TempDir()
	if err := fake.Libraries("amd", v.dir, without...); err != nil {
		t.Fatal(err)
	}
	return &v
}

// allKinds has an engine decode batches of every count and kind, and compares.
func allKinds(t *testing.T, e *Engine) {
	t.Helper()
	on, _ := kindsOfTiles(t)
	var jobs []microtome.Job
	for _, tile := range on {
		for range 3 {
			jobs = append(jobs, microtome.Job{Tile: tile})
		}
	}
	for _, n := range []int{1, 3, 8, 17, len(jobs)} {
		for i, r := range loadAll(e, jobs[:n]) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if diff, err := e.compare(context.Background(), &jobs[i].Tile, r.Pixels); err != nil || diff != 0 {
				t.Errorf("%d of %d: %d off, %v", i, n, diff, err)
			}
			r.Pixels.Release()
		}
	}
	if st := e.Stats(); st.Strikes != 0 || st.Ineligible["the device refused the batch"] != 0 {
		t.Errorf("%+v", st)
	}
}

// Every architecture has its number of cores, wave and code object; where the GPU has
// fewer cores than its architecture (a partition), or rocJPEG is older than 1.7, the
// pixels are the same.
func TestAMDArchitectures(t *testing.T) {
	for _, setting := range []string{"arch=gfx908", "arch=gfx942:sramecc+:xnack-", "arch=gfx1030", "arch=gfx1100", "cores=1", "cores=3"} {
		t.Run(setting, func(t *testing.T) {
			allKinds(t, opened(t, testOptions(t, fakeVendors[1], setting)))
		})
	}
	t.Run("before 1.7", func(t *testing.T) {
		allKinds(t, opened(t, testOptions(t, amdFakes(t, "rocJpegDecodeAsync"), "")))
	})
}

// Surfaces are large, and kept for every count of pictures that a call has had:
// memory for one count of each kind must do.
func TestAMDSurfacesAreBounded(t *testing.T) {
	o := testOptions(t, fakeVendors[1], "memory=1000")
	o.Arena = 128 << 20
	allKinds(t, opened(t, o))
}

// Grey pictures end the process in some versions: the CPU has them then, and nothing
// else is lost.
func TestAMDGreyMayCrash(t *testing.T) {
	o := testOptions(t, fakeVendors[1], "gray=crash")
	o.Quiet = true
	e := opened(t, o)
	on, _ := kindsOfTiles(t)
	for name, tile := range on {
		before := e.Stats().Decoded
		r := loadAll(e, []microtome.Job{{Tile: tile}})[0]
		if r.Err != nil {
			t.Errorf("%s: %v", name, r.Err)
			continue
		}
		if diff, err := e.compare(context.Background(), &tile, r.Pixels); err != nil || diff != 0 {
			t.Errorf("%s: %d off, %v", name, diff, err)
		}
		if grey := tile.Samples == 1; (e.Stats().Decoded == before) != grey {
			t.Errorf("%s: decoded by the GPU %t", name, !grey)
		}
		r.Pixels.Release()
	}
	if st := e.Stats(); st.Strikes != 0 || st.State != "ready" {
		t.Errorf("%+v", st)
	}
}

// rocJPEG 0.x is refused, whatever its file is called.
func TestOldRocJPEGIsRefused(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	v := amdFakes(t)
	last := "librocjpeg.so.1"
	for _, name := range []string{"librocjpeg.so.0", "librocjpeg.so.1", "librocjpeg.so"} {
		if err := os.Remove(filepath.Join(v.dir, last)); err != nil {
			t.Fatal(err)
		}
		if err := fake.OldRocJPEG(v.dir, name); err != nil {
			t.Fatal(err)
		}
		last = name
		s := Look(context.Background(), []string{self}, []string{workerEnv + "=1"}, "amd", v.dir)
		if s.Trouble == nil || s.Trouble.Kind != wire.Missing || !strings.Contains(s.Trouble.Err.Error(), "0.x") {
			t.Errorf("%s: %v", name, s.Trouble)
		}
	}
}

// What rocJPEG needs and is not there is named, and so is that it needs another HIP
// than the engine's: a second runtime, which knows nothing of the first's memory.
func TestRocJPEGNeedsOtherLibraries(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	v := amdFakes(t)
	for _, c := range []struct {
		soname string
		there  bool
		want   string
	}{{"libva.so.2", false, "libva.so.2"}, {"libamdhip64.so.6", true, "another HIP"}} {
		if err := fake.RocJPEGThatNeeds(v.dir, c.soname, c.there); err != nil {
			t.Fatal(err)
		}
		s := Look(context.Background(), []string{self}, []string{workerEnv + "=1"}, "amd", v.dir)
		if s.Trouble == nil || s.Trouble.Kind != wire.Missing || !strings.Contains(s.Trouble.Err.Error(), c.want) {
			t.Errorf("%s: %v", c.soname, s.Trouble)
		}
	}
}

// A GPU that no code object is for has its kernels compiled, or is refused: in time,
// whatever hipRTC does.
func TestKernelsByHIPRTC(t *testing.T) {
	v := amdFakes(t)
	const arch = "arch=gfx1031"
	refused := func(faults, why string) {
		t.Helper()
		start := time.Now()
		o := testOptions(t, v, arch+faults)
		o.Start, o.Quiet = time.Second, true
		e, err := Open(o)
		if err == nil {
			t.Errorf("%s: it starts", faults)
			e.Close()
		} else if !strings.Contains(err.Error(), why) || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %v, after %v", faults, err, time.Since(start))
		}
	}
	refused("", "hipRTC")
	if err := fake.HIPRTC(v.dir, "native/kernels/gfx1030.co"); err != nil {
		t.Fatal(err)
	}
	allKinds(t, opened(t, testOptions(t, v, arch)))
	refused(",hiprtcCompileProgram:1:6", "hipRTC error 6")
	refused(",hiprtcCreateProgram:1:1", "hipRTC error 1")
	refused(",hiprtcGetCode:1:9", "hipRTC error 9")
	refused(",hiprtcCompileProgram:1:crash", "ended before it was ready")
	refused(",hiprtcCompileProgram:1:hang", "did not answer")
}
