//go:build cgo && linux

package qualify

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/microtome/microtome/decode"
	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/decode/gpu/fake"
)

// The test binary is its own worker.
const workerEnv = "MICROTOME_TEST_GPU_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		if err := gpu.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// on runs the battery over the fakes.
func on(t *testing.T, vendor, libraries, faults string) Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cpu := decode.NewCPU(decode.Options{Workers: 2})
	defer cpu.Close()
	return Run(context.Background(), Options{Brief: true, Engine: gpu.Options{
		Vendor: vendor, Libraries: libraries, CPU: cpu, Worker: []string{self},
		Env: []string{workerEnv + "=1", fake.Env + "=" + faults}, Timeout: 2 * time.Second,
	}})
}

func fakes(t *testing.T, vendor string) string {
	t.Helper()
	dir := t.TempDir()
	if err := fake.Libraries(vendor, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A good device passes every step, twice with the same words.
func TestGoodDevicePasses(t *testing.T) {
	for _, vendor := range fake.Vendors() {
		t.Run(vendor, func(t *testing.T) { testGoodDevicePasses(t, vendor) })
	}
}

func testGoodDevicePasses(t *testing.T, vendor string) {
	dir := fakes(t, vendor)
	start := time.Now()
	one := on(t, vendor, dir, "")
	t.Logf("the battery took %v", time.Since(start))
	for _, s := range one.Steps {
		if s.Verdict != Passed && s.Verdict != NotClaimed {
			t.Errorf("%s: %s: %s", s.Name, s.Verdict, s.Reason)
		}
	}
	if len(one.Steps) < 25 || !one.Passed() || one.First() != nil {
		t.Errorf("%d steps, passed %t", len(one.Steps), one.Passed())
	}
	if underRace || vendor != "nvidia" {
		return
	}
	if two := on(t, vendor, dir, ""); !reflect.DeepEqual(one, two) {
		t.Errorf("again, it says %+v, not %+v", two, one)
	}
}

// With each defect that the fakes can be given the battery fails, and says at which
// step. None of them is seen by the proof at the start.
func TestDefectsAreNamed(t *testing.T) {
	if underRace {
		t.Skip("it is run without the race detector")
	}
	dir := fakes(t, "nvidia")
	for defect, step := range map[string]string{
		"short":     "host copy",
		"layout":    "layouts and types",
		"types":     "layouts and types",
		"fill":      "fill",
		"round":     "area filter",
		"sample":    "decode 4:4:4",
		"odd":       "decode 4:4:4",
		"large":     "decode 4:4:4",
		"box":       "upsampling 4:2:2",
		"matrix":    "colour",
		"swap":      "batch of 16",
		"last":      "batch of 16",
		"size17":    "batch of 17",
		"refuse255": "batch of 255",
		"dies":      "batch of 255",
		"repeat":    "64 repeats",
		"state":     "state A, B, A",
		"hoard":     "memory",
		"race":      "two lanes at once",
		"poison":    "bad input, not walked",
		"stuck":     "bad input, not walked",
	} {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			r := on(t, "nvidia", dir, "defect="+defect)
			f := r.First()
			if r.Passed() || f == nil {
				t.Fatalf("it passes: %+v", r.Steps)
			}
			if f.Name != step || f.Reason == "" {
				t.Errorf("%s failed first, not %s: %s", f.Name, step, f.Reason)
			}
			t.Log(f.Reason)
		})
	}
}
