// Package fake builds stand-ins for the vendors' GPU libraries, over host memory
// and libjpeg-turbo, so that the whole engine runs in tests on machines without a
// GPU. They refuse what the real ones refuse, and fail on order.
package fake

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Env is the variable that orders faults: see lib/fault.h.
const Env = "MICROTOME_FAKE"

// NVIDIA builds libcuda.so.1 and libnvjpeg.so.13 into dir.
func NVIDIA(dir string) error {
	if err := build(dir, "libcuda.so.1", "cuda.c"); err != nil {
		return err
	}
	return build(dir, "libnvjpeg.so.13", "nvjpeg.c", "-ljpeg")
}

func build(dir, name, source string, libs ...string) error {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return fmt.Errorf("fake: where the sources lie is unknown")
	}
	args := []string{"-O2", "-std=gnu11", "-shared", "-fPIC", "-o", filepath.Join(dir, name),
		filepath.Join(filepath.Dir(here), "lib", source)}
	out, err := exec.Command("gcc", append(args, libs...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fake: %s: %w: %s", name, err, out)
	}
	return nil
}
