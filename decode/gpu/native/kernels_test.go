//go:build cgo && linux

package native

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kernelsBy is the compiler that the embedded kernels come from. Others order
// instructions otherwise.
const kernelsBy = "clang version 19.1.7"

var kernelNames = []string{"mt_across_kernel", "mt_down_kernel", "mt_fill_kernel", "mt_lay_kernel", "mt_paint_kernel"}

// The embedded kernels are what their source says, and come out the same each time.
func TestKernelsAreTheSources(t *testing.T) {
	version, err := exec.Command("clang-19", "--version").Output()
	if err != nil || !strings.Contains(string(version), kernelsBy) {
		t.Skipf("NOT CHECKED that the embedded kernels are what kernels.cu says: they were made by %s, here is %.60q (%v)", kernelsBy, version, err)
	}
	out := t.TempDir()
	cmd := exec.Command("../../../scripts/kernels", out)
	cmd.Env = append(os.Environ(), "OFFLINE=1")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	objects, err := filepath.Glob("kernels/*.co")
	if err != nil || len(objects) == 0 {
		t.Fatal(objects, err)
	}
	for _, name := range append(objects, "kernels_sm_75.ptx") {
		built, err := os.ReadFile(filepath.Join(out, name))
		if os.IsNotExist(err) && strings.Contains(name, "gfx950") {
			t.Logf("NOT CHECKED that %s is what kernels.cu says: scripts/kernels has no compiler for it here", name)
			continue
		}
		embedded, err2 := os.ReadFile(name)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if !bytes.Equal(built, embedded) {
			t.Errorf("%s is not what kernels.cu says: run make kernels, and prove it on a GPU", name)
		}
	}
}

// machines are the processors of code objects, as the ELF flags number them (LLVM,
// User Guide for AMDGPU Backend, EF_AMDGPU_MACH), and how wide their waves are.
var machines = map[string]struct{ number, wave uint32 }{
	"gfx908": {0x30, 64}, "gfx90a": {0x3f, 64}, "gfx942": {0x4c, 64}, "gfx950": {0x4f, 64},
	"gfx1030": {0x36, 32}, "gfx1100": {0x41, 32}, "gfx1101": {0x46, 32}, "gfx1200": {0x48, 32}, "gfx1201": {0x4e, 32},
}

// Each embedded code object is for the processor that it is named by, with any
// setting of its features; has every kernel and needs nothing; uses neither scratch
// nor shared memory; and is of a version that ROCm 6 loads.
func TestCodeObjects(t *testing.T) {
	entries, err := codeObjects.ReadDir("kernels")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".co"))
	}
	if want := slices.Sorted(maps.Keys(machines)); !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("code objects for %v, not %v", names, want)
	}
	for _, arch := range names {
		t.Run(arch, func(t *testing.T) { auditObject(t, arch, codeObject(arch)) })
	}
}

func auditObject(t *testing.T, arch string, object []byte) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	const amdgpu, hsa, v5 = 224, 64, 3
	if f.Machine != amdgpu || f.OSABI != hsa || f.ABIVersion != v5 || f.Class != elf.ELFCLASS64 {
		t.Errorf("machine %d, ABI %d version %d", f.Machine, f.OSABI, f.ABIVersion)
	}
	flags := binary.LittleEndian.Uint32(object[48:])
	m := machines[arch]
	if flags&0xff != m.number {
		t.Errorf("processor %#x, not %#x", flags&0xff, m.number)
	}
	// Where there are such features they are "any": 1 in two bits each.
	if xnack, sramecc := flags>>8&3, flags>>10&3; xnack > 1 || sramecc > 1 {
		t.Errorf("features are settled: flags %#x", flags)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var kernels []string
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF {
			t.Errorf("it needs %s", s.Name)
		}
		if name, ok := strings.CutSuffix(s.Name, ".kd"); ok {
			kernels = append(kernels, name)
		}
	}
	if slices.Sort(kernels); !slices.Equal(kernels, kernelNames) {
		t.Errorf("kernels %v, not %v", kernels, kernelNames)
	}
	auditNotes(t, arch, m.wave, f)
}

// auditNotes reads the metadata of a code object's kernels: MessagePack, in which a
// small number is one byte behind its key.
func auditNotes(t *testing.T, arch string, wave uint32, f *elf.File) {
	note := f.Section(".note")
	if note == nil {
		t.Fatal("no notes")
	}
	data, err := note.Data()
	if err != nil {
		t.Fatal(err)
	}
	if target := "amdgcn-amd-amdhsa--" + arch; !bytes.Contains(data, append([]byte{0xA0 | byte(len(target))}, target...)) &&
		!bytes.Contains(data, append([]byte{0xD9, byte(len(target))}, target...)) {
		t.Errorf("the target is not %s", target)
	}
	for key, want := range map[string]byte{
		".group_segment_fixed_size": 0, ".private_segment_fixed_size": 0, ".sgpr_spill_count": 0, ".vgpr_spill_count": 0,
		".uses_dynamic_stack": 0xC2, ".wavefront_size": byte(wave),
	} {
		rest, n := data, 0
		for {
			_, after, ok := bytes.Cut(rest, []byte(key))
			if !ok || len(after) == 0 {
				break
			}
			if after[0] != want {
				t.Errorf("%s is %#x, not %#x", key, after[0], want)
			}
			rest, n = after, n+1
		}
		if n != len(kernelNames) {
			t.Errorf("%s of %d kernels", key, n)
		}
	}
}

// A device is told apart by its architecture alone.
func TestKernelsFor(t *testing.T) {
	for arch, want := range map[string]struct {
		target string
		fit    bool
	}{
		"gfx942": {"gfx942", true}, "gfx1201": {"gfx1201", true}, "gfx1103": {"hipRTC", true}, "gfx94": {"hipRTC", true},
		"sm_75": {"sm_75", true}, "sm_90": {"sm_75", true}, "sm_70": {"sm_75", false}, "": {"sm_75", false},
	} {
		if target, fit := kernelsFor(arch); target != want.target || fit != want.fit {
			t.Errorf("%q: %s %v", arch, target, fit)
		}
	}
}

// What hipRTC is given compiles without any header, whether the compiler has types of
// the same names or not.
func TestOneSource(t *testing.T) {
	if _, err := exec.LookPath("clang-19"); err != nil {
		t.Skipf("NOT CHECKED that the source for hipRTC compiles: %v", err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "one.cu")
	for name, before := range map[string]string{
		"without types": "", "with types": "typedef unsigned char uint8_t; typedef unsigned long long uint64_t; typedef unsigned uint32_t;\n",
	} {
		if err := os.WriteFile(file, []byte(before+oneSource()), 0o600); err != nil {
			t.Fatal(err)
		}
		object := filepath.Join(dir, "one.co")
		if text, err := exec.Command("clang-19", "-x", "hip", "--offload-arch=gfx1103", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-nostdinc",
			"--no-gpu-bundle-output", "-Wall", "-Werror", "-O3", "-ffp-contract=off", "-c", "-o", object, file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}
