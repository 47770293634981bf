package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// scriptDoctored replaces what another host or build has otherwise.
func scriptDoctored(ts *testscript.TestScript, neg bool, args []string) {
	var r doctorReport
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &r))
	if !strings.Contains(r.Build, "go1") || r.Host == nil || r.Host.RingBytes == 0 {
		ts.Fatalf("build %q, host %v", r.Build, r.Host)
	}
	r.Build, r.Host = "", nil
	for i := range r.Vendors {
		r.Vendors[i].OnPCI = 0
	}
	text, err := json.MarshalIndent(r, "", "  ")
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), append(text, '\n'), 0o644))
}

// Every trouble has a line that says what it is and what to do.
func TestDoctorSaysWhatToDo(t *testing.T) {
	driver := gpu.Library{Role: "driver", Looked: []string{"/x/libcuda.so.1", "libcuda.so.1"}}
	absent, good := driver, driver
	absent.Why, absent.Absent = "libcuda.so.1: cannot open shared object file", true
	good.File = "/usr/lib/libcuda.so.1"
	needs := gpu.Library{Role: "decoder", Looked: []string{"/x/libnvjpeg.so.13"}, Why: "libnvcuvid.so.1: cannot open shared object file"}
	locked, small := int64(8<<20), int64(600<<20)
	low := &doctorHost{RingBytes: 512 << 20, LockedBytes: &locked}
	inside := &doctorHost{RingBytes: 512 << 20, MemoryBytes: &small}
	missing := &gpu.Trouble{Step: gpu.StepLibraries, Kind: wire.Missing, Err: errors.New("a library")}
	ended := func(step gpu.Step) *gpu.Trouble {
		return &gpu.Trouble{Step: step, Died: true, Err: errors.New("the worker died")}
	}
	pin := &gpu.Trouble{Step: gpu.StepOpen, Kind: wire.Pin, Err: errors.New("nvidia:0: gpu-worker: pin the ring: error 7")}
	for _, c := range []struct {
		name    string
		trouble *gpu.Trouble
		libs    []gpu.Library
		found   *gpu.Found
		onBus   int
		host    *doctorHost
		want    string
	}{
		{"no GPU", missing, []gpu.Library{absent}, nil, 0, nil,
			"this host has no NVIDIA GPU: none is on its PCI bus, and libcuda.so.1 was not found (looked for /x/libcuda.so.1, libcuda.so.1 on the loader's path): decode on the CPU"},
		{"a GPU without its driver", missing, []gpu.Library{absent}, nil, 2, nil, "libcuda.so.1 was not found (looked for /x/libcuda.so.1, libcuda.so.1 on the loader's path): install NVIDIA's driver"},
		{"the bus can't be seen", missing, []gpu.Library{absent}, nil, -1, nil, "libcuda.so.1 was not found"},
		{"a library needs another", missing, []gpu.Library{good, needs}, nil, 1, nil, "a library can't be opened: libnvcuvid.so.1: cannot open shared object file: what nvJPEG needs"},
		{"no compiler", &gpu.Trouble{Step: gpu.StepBuild, Err: errors.New("x")}, nil, nil, 0, nil, "this binary "},
		{"old GPU", &gpu.Trouble{Step: gpu.StepOpen, Kind: wire.Lost, Err: errors.New("nvidia:1: load the kernels: error 5")}, nil,
			&gpu.Found{Info: gpu.Info{Arch: "sm_70", Kernels: "sm_75", Engines: 1}}, 1, nil, "load the kernels: error 5: it is sm_70, and the kernels are for GPUs from sm_75 on"},
		{"locked memory", pin, nil, nil, 1, low, "gpu-worker: pin the ring: error 7: raise the limit of locked memory (ulimit -l), 8 MiB, above the ring's 512 MiB"},
		{"a container's memory", pin, nil, nil, 1, inside, "gpu-worker: pin the ring: error 7: raise the container's memory limit of 600 MiB, of which the ring takes 512 MiB"},
		{"killed for memory", ended(gpu.StepOpen), nil, nil, 1, inside, "the worker died (while the engine was opened): raise the container's memory limit"},
		{"crashed with little locked memory", ended(gpu.StepOpen), nil, nil, 1, low, "the worker died (while the engine was opened): a library of the vendor's crashes here"},
		{"linked GPUs", &gpu.Trouble{Step: gpu.StepDriver, Code: 802, Err: errors.New("cuInit: CUDA error 802")}, nil, nil, 1, nil, "cuInit: CUDA error 802: the system is not ready"},
	} {
		e := examination{gpuVendor: gpuVendors()[0], onBus: c.onBus, host: c.host}
		got := e.trouble(c.trouble, &gpu.Survey{Libraries: c.libs}, c.found)
		if !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDoctorPrints(t *testing.T) {
	n := int64(8 << 20)
	r := doctorReport{Host: &doctorHost{RingBytes: 512 << 20, MemfdError: "function not implemented", LockedBytes: &n}, Vendors: []doctorVendor{{
		Title: "NVIDIA", Reason: "nvidia:0: it is old", OnPCI: 1,
		Libraries: []doctorLibrary{
			{Role: "driver", File: "/usr/lib/libcuda.so.1", Version: "551.86"},
			{Role: "decoder", Looked: []string{"libnvjpeg.so.13", "libnvjpeg.so.12", "/opt/libnvjpeg.so"}, Error: "no such file"},
		},
		Devices: []doctorDevice{{
			Device: "nvidia:0", Name: "Old", PCI: "0000:06:00.0", Driver: "551.86", API: "CUDA 12.4", Decoder: "nvJPEG 12.3.1", MemoryBytes: 16 << 30, FreeBytes: 3 << 29,
			Arch: "sm_70", Kernels: "sm_75", Engines: 1, Multiprocessors: 80, Settings: doctorSettings{Lanes: 4, Batch: 16, ArenaBytes: 3 << 28},
			Proof: &doctorProof{Reason: "it is old"},
		}},
	}}}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	const want = `NVIDIA
  engine   can't run: nvidia:0: it is old
  PCI bus  1 GPUs of NVIDIA
  driver   /usr/lib/libcuda.so.1, version 551.86
  decoder  not opened; looked for libnvjpeg.so.13, libnvjpeg.so.12 on the loader's path, /opt/libnvjpeg.so
nvidia:0
  name          Old at 0000:06:00.0
  driver        551.86, CUDA 12.4
  compute       sm_70, 80 multiprocessors; the kernels, of sm_75, do not fit
  memory        16 GiB, 1.5 GiB free
  JPEG engines  1 (nvJPEG 12.3.1)
  by default    768 MiB for tiles and batches, 4 lanes, 16 tiles a call
  proof         failed: it is old
host
  ring                can't be made: function not implemented
  locked memory       at most 8 MiB
  container's memory  no limit
`
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
}

func TestOnPCI(t *testing.T) {
	devices := fstest.MapFS{
		"0000:00:02.0/vendor": {Data: []byte("0x8086\n")}, "0000:00:02.0/class": {Data: []byte("0x030000\n")},
		"0000:06:00.0/vendor": {Data: []byte("0x10de\n")}, "0000:06:00.0/class": {Data: []byte("0x030200\n")},
		"0000:06:00.1/vendor": {Data: []byte("0x10de\n")}, "0000:06:00.1/class": {Data: []byte("0x040300\n")}, // its sound
		"0000:07:00.0/vendor": {Data: []byte("0x1002\n")}, "0000:07:00.0/class": {Data: []byte("0x120000\n")},
		"0000:08:00.0/vendor": {Data: []byte("0x1002\n")}, "0000:08:00.0/class": {Data: []byte("0x038000\n")},
	}
	for vendor, want := range map[string]int{"0x10de": 1, "0x1002": 2} {
		if n := onPCI(devices, vendor); n != want {
			t.Errorf("%d GPUs of %s, want %d", n, vendor, want)
		}
	}
	if n := onPCI(os.DirFS(t.TempDir()+"/none"), "0x10de"); n != -1 {
		t.Errorf("%d GPUs where nothing can be seen", n)
	}
}
