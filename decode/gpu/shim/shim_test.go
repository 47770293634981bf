package shim_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/microtome/microtome/decode/gpu/fake"
	"github.com/microtome/microtome/decode/gpu/shim"
	"github.com/microtome/microtome/synth/jpegenc"
)

// streams writes a stream of each sampling in even and odd sizes, and some that
// rocJPEG refuses. It returns their names.
func streams(t *testing.T, dir string) (names []string) {
	t.Helper()
	put := func(name string, w, h int, o jpegenc.Options, change func([]byte) []byte) {
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
		if change != nil {
			data = change(data)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	for name, s := range map[string]jpegenc.Sampling{"444": jpegenc.S444, "440": jpegenc.S440, "422": jpegenc.S422, "420": jpegenc.S420} {
		for _, size := range [][2]int{{64, 64}, {250, 130}, {251, 130}, {250, 131}, {97, 99}} {
			put(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), size[0], size[1], jpegenc.Options{Color: jpegenc.YCbCr, Sampling: s}, nil)
		}
	}
	half := jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420}
	put("gray", 251, 99, jpegenc.Options{Color: jpegenc.Gray}, nil)
	put("restarts", 200, 200, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S420, Restart: 3}, nil)
	put("411", 256, 256, jpegenc.Options{Color: jpegenc.YCbCr, Sampling: jpegenc.S411}, nil)
	put("small", 63, 200, half, nil)
	put("short", 256, 256, half, func(b []byte) []byte { return b[:100] })
	put("no JPEG", 256, 256, half, func(b []byte) []byte { return b[2:] })
	put("SOF2", 256, 256, half, func(b []byte) []byte {
		b[bytes.Index(b, []byte{0xFF, 0xC0})+1] = 0xC2
		return b
	})
	return names
}

// The shims' NATIVE output is the AMD fakes', to the last byte and not one more:
// those follow rocJPEG's sources. MICROTOME_SHIMS names shims over a real CUDA.
func TestNativeOutput(t *testing.T) {
	dir := t.TempDir()
	names := streams(t, dir)
	over := map[string]string{"fakes": filepath.Join(dir, "amd"), "shims": os.Getenv("MICROTOME_SHIMS")}
	if err := os.Mkdir(over["fakes"], 0o755); err != nil {
		t.Fatal(err)
	}
	if err := fake.Libraries("amd", over["fakes"]); err != nil {
		t.Fatal(err)
	}
	if over["shims"] == "" {
		over["shims"] = filepath.Join(dir, "shims")
		if err := shim.Fakes(over["shims"]); err != nil {
			t.Fatal(err)
		}
	}
	made := map[string][]byte{}
	for _, name := range names {
		for what, lib := range over {
			made[what] = native(t, dir, lib, name)
		}
		if !bytes.Equal(made["fakes"], made["shims"]) {
			t.Errorf("%s: fakes: %s\nshims: %s\nand %d bytes differ", name, head(made["fakes"]), head(made["shims"]), differing(made["fakes"], made["shims"]))
		}
	}
}

// native runs lib/native.c over a folder of libraries.
func native(t *testing.T, dir, lib, name string) []byte {
	t.Helper()
	program := filepath.Join(lib, "native")
	if _, err := os.Stat(program); err != nil {
		program = filepath.Join(dir, "native-"+filepath.Base(lib))
		out, err := exec.Command("gcc", "-std=gnu11", "-Wall", "-o", program, "lib/native.c", "-L"+lib, "-l:librocjpeg.so.1",
			"-l:libamdhip64.so.7", "-Wl,-rpath,"+lib).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run := exec.Command(program, name)
	run.Dir = dir
	run.Stderr = os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%s over %s: %v", name, lib, err)
	}
	return out
}

func head(b []byte) string {
	text, _, _ := strings.Cut(string(b), "\xA5")
	return strings.ToValidUTF8(text, "?")
}

func differing(a, b []byte) (n int) {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// The embedded PTX is what pack.cu says.
func TestPackIsTheSources(t *testing.T) {
	version, err := exec.Command("clang-19", "--version").Output()
	if err != nil || !strings.Contains(string(version), "clang version 19.1.7") {
		t.Skipf("NOT CHECKED that pack_sm_75.ptx is what pack.cu says: clang 19.1.7 is not here (%v)", err)
	}
	out := filepath.Join(t.TempDir(), "pack.ptx")
	build := exec.Command("../build", "--ptx", out)
	build.Dir = "lib"
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	built, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := os.ReadFile("lib/pack_sm_75.ptx")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(built, embedded) {
		t.Error("pack_sm_75.ptx is not what pack.cu says: run decode/gpu/shim/build --ptx decode/gpu/shim/lib/pack_sm_75.ptx")
	}
}
