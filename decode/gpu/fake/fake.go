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
	"slices"
)

// Env is the variable that orders faults, and Once names a file that lets only one
// come: see lib/fault.h.
const (
	Env  = "MICROTOME_FAKE"
	Once = "MICROTOME_FAKE_ONCE"
)

// DriverVersion is that of the fake NVIDIA driver, and HIPVersion that of the fake
// HIP runtime.
const (
	DriverVersion = "999.10.01"
	HIPVersion    = "7.1.99910"
)

// Vendors are those whose libraries can be built.
func Vendors() []string { return []string{"nvidia", "amd"} }

// Libraries builds a vendor's libraries into a folder. Functions named by without
// are not in them, as in older ones.
func Libraries(vendor, dir string, without ...string) error {
	switch vendor {
	case "nvidia":
		return nvidia(dir, without)
	case "amd":
		return amd(dir, without)
	}
	return fmt.Errorf("fake: there are no libraries of %s", vendor)
}

// NVIDIA is Libraries for both of NVIDIA's.
func NVIDIA(dir string) error { return Libraries("nvidia", dir) }

// nvidia builds libcuda.so.1, a link to the file with the driver's version as a
// real one is, and libnvjpeg.so.13.
func nvidia(dir string, without []string) error {
	if err := build(dir, "libcuda.so."+DriverVersion, "cuda.c", without); err != nil {
		return err
	}
	if err := link(dir, "libcuda.so."+DriverVersion, "libcuda.so.1"); err != nil {
		return err
	}
	return build(dir, "libnvjpeg.so.13", "nvjpeg.c", without, "-ljpeg")
}

// amd builds libamdhip64.so.7, a link as a real one is, and librocjpeg.so.1, which
// needs it.
func amd(dir string, without []string) error {
	if err := build(dir, "libamdhip64.so."+HIPVersion, "hip.c", without, "-Wl,-soname,libamdhip64.so.7"); err != nil {
		return err
	}
	if err := link(dir, "libamdhip64.so."+HIPVersion, "libamdhip64.so.7"); err != nil {
		return err
	}
	return rocjpeg(dir, "librocjpeg.so.1", without, "-Wl,-soname,librocjpeg.so.1")
}

// HIPRTC builds libhiprtc.so.7, which gives a code object, a file, for any GPU.
func HIPRTC(dir, codeObject string) error {
	at, err := filepath.Abs(codeObject)
	if err != nil {
		return err
	}
	return build(dir, "libhiprtc.so.7", "hiprtc.c", nil, fmt.Sprintf("-DCODE_OBJECT=%q", at))
}

// OldRocJPEG builds rocJPEG 0.x under a name, beside a HIP that is there: its batches
// have one set of parameters for all pictures.
func OldRocJPEG(dir, name string) error {
	return rocjpeg(dir, name, nil, "-Wl,-soname,librocjpeg.so.0", "-DROCJPEG_0")
}

// RocJPEGThatNeeds builds a librocjpeg.so.1 that needs one more library, which is in
// the folder too or, as on a host where it was not installed, is not.
func RocJPEGThatNeeds(dir, soname string, there bool) error {
	beside := dir
	if !there {
		var err error
		if beside, err = os.MkdirTemp("", "microtome-fake"); err != nil {
			return err
		}
		defer os.RemoveAll(beside)
	}
	if err := build(beside, soname, "none.c", nil, "-Wl,-soname,"+soname); err != nil {
		return err
	}
	return rocjpeg(dir, "librocjpeg.so.1", nil, "-Wl,-soname,librocjpeg.so.1", "-Wl,--no-as-needed", filepath.Join(beside, soname))
}

func rocjpeg(dir, name string, without []string, flags ...string) error {
	flags = append(flags, "-ljpeg", "-L"+dir, "-l:libamdhip64.so.7", "-Wl,-rpath,$ORIGIN")
	return build(dir, name, "rocjpeg.c", without, flags...)
}

func link(dir, file, name string) error {
	at := filepath.Join(dir, name)
	_ = os.Remove(at) // of an earlier build
	return os.Symlink(file, at)
}

func build(dir, name, source string, without []string, libs ...string) error {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return fmt.Errorf("fake: where the sources lie is unknown")
	}
	args := []string{"-O2", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Werror", "-shared", "-fPIC", "-o", filepath.Join(dir, name)}
	for _, symbol := range without {
		args = append(args, "-D"+symbol+"=without_"+symbol)
	}
	args = slices.Concat(args, []string{filepath.Join(filepath.Dir(here), "lib", source)}, libs)
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fake: %s: %w: %s", name, err, out)
	}
	return nil
}
