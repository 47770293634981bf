package fake_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/microtome/microtome/decode/gpu/fake"
	"github.com/microtome/microtome/synth/jpegenc"
)

// AMD's fakes behave as lib/check.c says that the libraries do.
func TestAMDBehaviour(t *testing.T) {
	dir := t.TempDir()
	if err := fake.Libraries("amd", dir); err != nil {
		t.Fatal(err)
	}
	if err := fake.OldRocJPEG(dir, "librocjpeg.so.0"); err != nil {
		t.Error(err)
	}
	stream := func(name string, w, h int, o jpegenc.Options, change func([]byte) []byte) {
		t.Helper()
		ch := 3
		if o.Color == jpegenc.Gray {
			ch = 1
		}
		pix := make([]byte, w*h*ch)
		for i := range pix {
			pix[i] = byte(i*i>>7 ^ i)
		}
		enc, err := jpegenc.New(o)
		if err != nil {
			t.Fatal(err)
		}
		data, err := enc.Encode(nil, pix, w, h, w*ch)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), change(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	same := func(b []byte) []byte { return b }
	half := jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420}
	stream("rgb420", 256, 256, half, same)
	stream("small", 48, 48, half, same)
	stream("truncated", 256, 256, half, func(b []byte) []byte { return append(b[:len(b)/2], 0xFF, 0xD9) })
	stream("gray", 256, 256, jpegenc.Options{Color: jpegenc.Gray}, same)
	stream("gray2x2", 256, 256, jpegenc.Options{Color: jpegenc.Gray}, func(b []byte) []byte {
		for i := range b {
			if b[i] == 0xFF && b[i+1] == 0xC0 {
				b[i+11] = 0x22
				return b
			}
		}
		return nil
	})
	check := filepath.Join(dir, "check")
	out, err := exec.Command("gcc", "-std=gnu11", "-Wall", "-o", check, "lib/check.c", "-L"+dir, "-l:librocjpeg.so.1", "-l:libamdhip64.so.7",
		"-Wl,-rpath,"+dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, faults := range []string{"", "node=first"} {
		run := exec.Command(check)
		run.Dir, run.Env = dir, append(os.Environ(), fake.Env+"="+faults)
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", faults, err, out)
		}
	}
}

// A library that lacks a function is one of an older version.
func TestWithoutAFunction(t *testing.T) {
	for vendor, symbol := range map[string]string{"nvidia": "nvjpegDecodeBatched", "amd": "hipMemGetInfo"} {
		dir := t.TempDir()
		if err := fake.Libraries(vendor, dir, symbol); err != nil {
			t.Errorf("%s: %v", vendor, err)
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.so*"))
		if err != nil || len(files) != 3 {
			t.Errorf("%s: %v, %v", vendor, files, err)
		}
		for _, file := range files {
			out, err := exec.Command("nm", "-D", "--defined-only", file).Output()
			if err != nil {
				t.Skipf("NOT CHECKED what the libraries define: %v", err)
			}
			for line := range lines(out) {
				if line == symbol {
					t.Errorf("%s has %s", file, symbol)
				}
			}
		}
	}
}

// lines are the last words of lines.
func lines(text []byte) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 0 {
			out[f[len(f)-1]] = true
		}
	}
	return out
}
