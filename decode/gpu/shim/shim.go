// Package shim builds HIP over CUDA's driver and rocJPEG over nvJPEG, so that the
// engine's AMD half runs on NVIDIA GPUs. They are for tests: see README.md.
package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/microtome/microtome/decode/gpu/fake"
)

// Build builds libamdhip64.so.7 and librocjpeg.so.1 into dir.
func Build(dir string) error {
	here, err := folder()
	if err != nil {
		return err
	}
	return run(filepath.Join(here, "build"), dir)
}

// Fakes is Build, and puts the tests' libcuda and libnvjpeg beside the shims, which
// find them there before the system's.
func Fakes(dir string) error {
	if err := Build(dir); err != nil {
		return err
	}
	if err := fake.NVIDIA(dir); err != nil {
		return err
	}
	here, err := folder()
	if err != nil {
		return err
	}
	link := filepath.Join(dir, "libcuda.so.1")
	if err := os.Remove(link); err != nil {
		return err
	}
	return run("gcc", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", link, filepath.Join(here, "lib", "fake_cuda.c"))
}

func folder() (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", fmt.Errorf("shim: where the sources lie is unknown")
	}
	return filepath.Dir(here), nil
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("shim: %s: %w: %s", filepath.Base(name), err, out)
	}
	return nil
}
