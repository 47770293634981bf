// Package fake builds stand-ins for the vendors' GPU libraries, over host memory
// and libjpeg-turbo, so that the whole engine runs in tests on machines without a
// GPU. They refuse what the real ones refuse, and fail on order.
package fake

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Env is the variable that orders faults: see lib/fault.h.
const Env = "MICROTOME_FAKE"

// DriverVersion is that of the fake driver.
const DriverVersion = "999.10.01"

// NVIDIA builds libcuda.so.1, a link to the file with the driver's version as a
// real one is, and libnvjpeg.so.13 into dir.
func NVIDIA(dir string) error {
	file := "libcuda.so." + DriverVersion
	if err := build(dir, file, "cuda.c"); err != nil {
		return err
	}
	link := filepath.Join(dir, "libcuda.so.1")
	_ = os.Remove(link) // of an earlier build
	if err := os.Symlink(file, link); err != nil {
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
