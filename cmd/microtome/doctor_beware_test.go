package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/microtome/microtome/decode/gpu"
)

// What installs and will not run is named by files and variables alone; a host that is
// well, and one without a GPU, give no line.
func TestBeware(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	amd := func(more fstest.MapFS) fstest.MapFS {
		root := fstest.MapFS{
			"sys/class/kfd/kfd/topology/nodes/0/properties": file("cpu_cores_count 8\ngfx_target_version 0\n"),
			"sys/class/kfd/kfd/topology/nodes/1/properties": file("simd_count 304\ngfx_target_version 90402\n"),
			"dev/kfd": file(""), "dev/dri/renderD128": file(""),
			"usr/lib/x86_64-linux-gnu/dri/radeonsi_drv_video.so": file(""),
			"opt/rocm/lib/librocjpeg.so.1":                       file("\x00hipv4-amdgcn-amd-amdhsa--gfx90a\x00hipv4-amdgcn-amd-amdhsa--gfx942\x00"),
		}
		for name, f := range more {
			if root[name] = f; f == nil {
				delete(root, name)
			}
		}
		return root
	}
	rocjpeg := &gpu.Survey{Libraries: []gpu.Library{{Role: "decoder", File: "/opt/rocm/lib/librocjpeg.so.1"}}}
	nvidia := fstest.MapFS{"sys/module/nvidia/version": file("580.159.03\n"), "dev/nvidiactl": file(""), "dev/nvidia-uvm": file("")}
	cuda := &gpu.Survey{Libraries: []gpu.Library{{Role: "driver", Version: "580.159.03"}}}
	for name, c := range map[string]struct {
		vendor string
		root   fstest.MapFS
		env    string // NAME=VALUE
		survey *gpu.Survey
		want   string // "": nothing
	}{
		"no GPU":         {"nvidia", fstest.MapFS{}, "", &gpu.Survey{}, ""},
		"no AMD GPU":     {"amd", fstest.MapFS{}, "", rocjpeg, ""},
		"well":           {"nvidia", nvidia, "NVIDIA_DRIVER_CAPABILITIES=compute,utility,video", cuda, ""},
		"AMD well":       {"amd", amd(nil), "", rocjpeg, ""},
		"hidden":         {"nvidia", nvidia, "CUDA_VISIBLE_DEVICES=1", cuda, "CUDA_VISIBLE_DEVICES=1 hides"},
		"AMD hidden":     {"amd", amd(nil), "ROCR_VISIBLE_DEVICES=0", rocjpeg, "ROCR_VISIBLE_DEVICES=0 hides"},
		"none given":     {"nvidia", nvidia, "NVIDIA_VISIBLE_DEVICES=void", cuda, "no GPU"},
		"no video":       {"nvidia", nvidia, "NVIDIA_DRIVER_CAPABILITIES=compute,utility", cuda, "leaves out video"},
		"MIG":            {"nvidia", fstest.MapFS{"proc/driver/nvidia/capabilities/gpu0/mig/gi1/access": file("")}, "", cuda, "MIG is on (1 partitions)"},
		"other libcuda":  {"nvidia", nvidia, "", &gpu.Survey{Libraries: []gpu.Library{{Role: "driver", Version: "570.1"}}}, "libcuda is of driver 570.1"},
		"no uvm":         {"nvidia", fstest.MapFS{"sys/module/nvidia/version": file("580.159.03"), "dev/nvidiactl": file("")}, "", cuda, "/dev/nvidia-uvm is not here"},
		"override":       {"amd", amd(nil), "HSA_OVERRIDE_GFX_VERSION=9.0.0", rocjpeg, "taken for another"},
		"XNACK":          {"amd", amd(nil), "HSA_XNACK=1", rocjpeg, "HSA_XNACK=1"},
		"other gfx":      {"amd", amd(fstest.MapFS{"sys/class/kfd/kfd/topology/nodes/1/properties": file("gfx_target_version 110000")}), "", rocjpeg, "built for gfx90a, gfx942; a GPU here is gfx1100"},
		"no kfd":         {"amd", amd(fstest.MapFS{"dev/kfd": nil}), "", rocjpeg, "/dev/kfd is not here"},
		"no render node": {"amd", amd(fstest.MapFS{"dev/dri/renderD128": nil}), "", rocjpeg, "renderD* is not here"},
		"no Mesa":        {"amd", amd(fstest.MapFS{"usr/lib/x86_64-linux-gnu/dri/radeonsi_drv_video.so": nil}), "", rocjpeg, "radeonsi_drv_video.so is in none"},
		"other Mesa":     {"amd", amd(nil), "LIBVA_DRIVERS_PATH=/nowhere", rocjpeg, "in none of /nowhere"},
		"other driver":   {"amd", amd(nil), "LIBVA_DRIVER_NAME=iHD", rocjpeg, "needs radeonsi"},
		"old libva":      {"amd", amd(nil), "", &gpu.Survey{Loaded: []string{"/usr/lib/libva.so.2.1700.0"}}, "VA-API 1.17"},
		"new libva":      {"amd", amd(nil), "", &gpu.Survey{Loaded: []string{"/usr/lib/libva.so.2.2200.0"}}, ""},
	} {
		env := func(n string) string {
			if k, v, _ := strings.Cut(c.env, "="); k == n {
				return v
			}
			return ""
		}
		got := surroundings{c.root, env, c.survey}.beware(c.vendor)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
