package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/microtome/microtome/decode/gpu"
)

// surroundings are the host as libraries find it: what installs well and will not run
// is seen there, in files and variables, before any code of the vendor's.
type surroundings struct {
	root   fs.FS
	env    func(string) string
	survey *gpu.Survey
}

// beware says what is known to end badly, or to surprise, a line each.
func (e *examination) beware(s *gpu.Survey) []string {
	return surroundings{os.DirFS("/"), os.Getenv, s}.beware(e.name)
}

func (s surroundings) beware(vendor string) (list []string) {
	if vendor == "amd" {
		return slices.Concat(s.hides("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES"), s.pretends(), s.node(), s.builtFor(), s.video())
	}
	return slices.Concat(s.hides("CUDA_VISIBLE_DEVICES"), s.container(), s.partitions(), s.versions())
}

// hides tells of variables that change which GPUs there are, and their numbers.
func (s surroundings) hides(names ...string) (list []string) {
	for _, n := range names {
		if v := s.env(n); v != "" {
			list = append(list, fmt.Sprintf("%s=%s hides GPUs, and --device counts those that are left", n, v))
		}
	}
	return list
}

// container tells of what NVIDIA's container toolkit was not asked to bring in.
func (s surroundings) container() (list []string) {
	if v := s.env("NVIDIA_VISIBLE_DEVICES"); v == "none" || v == "void" {
		list = append(list, "NVIDIA_VISIBLE_DEVICES="+v+": this container is given no GPU")
	}
	v := s.env("NVIDIA_DRIVER_CAPABILITIES")
	for _, need := range []string{"compute", "video"} {
		if has := strings.Split(v, ","); v != "" && !slices.Contains(has, "all") && !slices.Contains(has, need) {
			list = append(list, "NVIDIA_DRIVER_CAPABILITIES="+v+" leaves out "+need+": nvJPEG will not open")
		}
	}
	return list
}

// partitions tells of MIG.
func (s surroundings) partitions() []string {
	parts, _ := fs.Glob(s.root, "proc/driver/nvidia/capabilities/gpu*/mig/gi*")
	if len(parts) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("MIG is on (%d partitions): one has a JPEG engine only if its profile does (nvidia-smi mig -lgip), and CUDA opens one of them, named by CUDA_VISIBLE_DEVICES", len(parts))}
}

// versions tells of a libcuda that is not the kernel module's, and of missing nodes.
func (s surroundings) versions() (list []string) {
	text, err := fs.ReadFile(s.root, "sys/module/nvidia/version")
	if err != nil {
		return nil
	}
	kernel := strings.TrimSpace(string(text))
	for _, l := range s.survey.Libraries {
		if l.Role == "driver" && l.Version != "" && l.Version != kernel {
			list = append(list, "libcuda is of driver "+l.Version+", the kernel's module of "+kernel+": start the host anew, or a container with the host's own libcuda")
		}
	}
	for _, node := range []string{"dev/nvidiactl", "dev/nvidia-uvm"} {
		if why := s.closed(node); why != "" {
			list = append(list, why)
		}
	}
	return list
}

// closed says why a node can't be opened, "" when it can.
func (s surroundings) closed(node string) string {
	f, err := s.root.Open(node)
	switch {
	case err == nil:
		_ = f.Close()
	case errors.Is(err, fs.ErrNotExist):
		return "/" + node + " is not here: a container must be given it"
	case errors.Is(err, fs.ErrPermission):
		return "/" + node + " may not be opened by this user: its group (render, video) is needed"
	}
	return ""
}

// pretends tells of variables by which AMD's runtime takes a GPU for another.
func (s surroundings) pretends() (list []string) {
	if v := s.env("HSA_OVERRIDE_GFX_VERSION"); v != "" {
		list = append(list, "HSA_OVERRIDE_GFX_VERSION="+v+" has the GPU taken for another: kernels of that one are run on it; unset it")
	}
	if v := s.env("HSA_XNACK"); v != "" {
		list = append(list, "HSA_XNACK="+v+": our kernels fit any setting, but a library that was built for the other one does not load")
	}
	return list
}

// gfx lists the architectures of the GPUs that the kernel has.
func (s surroundings) gfx() (list []string) {
	files, _ := fs.Glob(s.root, "sys/class/kfd/kfd/topology/nodes/*/properties")
	for _, file := range files {
		text, _ := fs.ReadFile(s.root, file)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == "gfx_target_version" {
				// 90402 is gfx942, 90010 gfx90a, 110000 gfx1100; 0 is a CPU.
				if n, err := strconv.Atoi(f[1]); err == nil && n > 0 {
					list = append(list, fmt.Sprintf("gfx%d%x%x", n/10000, n/100%100, n%100))
				}
			}
		}
	}
	return list
}

// node tells of AMD's nodes, where the kernel has a GPU.
func (s surroundings) node() (list []string) {
	if len(s.gfx()) == 0 {
		return nil
	}
	if why := s.closed("dev/kfd"); why != "" {
		list = append(list, why)
	}
	nodes, _ := fs.Glob(s.root, "dev/dri/renderD*")
	if len(nodes) == 0 {
		list = append(list, "/dev/dri/renderD* is not here: a container must be given it")
	}
	for _, n := range nodes {
		if why := s.closed(n); why != "" {
			list = append(list, why)
		}
	}
	return list
}

// builtFor tells of a decoder that was not built for a GPU here: its file names what
// its kernels are for.
func (s surroundings) builtFor() (list []string) {
	targets := regexp.MustCompile(`amdgcn-amd-amdhsa--(gfx[0-9a-f]+)`)
	for _, l := range s.survey.Libraries {
		if l.Role != "decoder" || l.File == "" {
			continue
		}
		text, err := fs.ReadFile(s.root, strings.TrimPrefix(l.File, "/"))
		if err != nil {
			continue
		}
		var has []string
		for _, m := range targets.FindAllSubmatch(text, -1) {
			if name := string(m[1]); !slices.Contains(has, name) {
				has = append(has, name)
			}
		}
		for _, g := range s.gfx() {
			if len(has) > 0 && !slices.Contains(has, g) {
				list = append(list, filepath.Base(l.File)+" is built for "+strings.Join(has, ", ")+"; a GPU here is "+g+": take a ROCm that has it")
			}
		}
	}
	return list
}

// video tells of what VA-API, by which rocJPEG decodes, needs.
func (s surroundings) video() (list []string) {
	if v := s.env("LIBVA_DRIVER_NAME"); v != "" && v != "radeonsi" {
		list = append(list, "LIBVA_DRIVER_NAME="+v+": rocJPEG needs radeonsi")
	}
	if len(s.gfx()) == 0 {
		return list
	}
	folders := []string{"usr/lib/x86_64-linux-gnu/dri", "usr/lib64/dri", "usr/lib/dri", "opt/amdgpu/lib/x86_64-linux-gnu/dri", "opt/amdgpu/lib64/dri", "opt/rocm/lib/rocm_sysdeps/lib"}
	if v := s.env("LIBVA_DRIVERS_PATH"); v != "" {
		folders = nil
		for _, f := range strings.Split(v, ":") {
			folders = append(folders, strings.Trim(f, "/"))
		}
	}
	if !slices.ContainsFunc(folders, func(f string) bool {
		_, err := fs.Stat(s.root, path.Join(f, "radeonsi_drv_video.so"))
		return err == nil
	}) {
		list = append(list, "Mesa's radeonsi_drv_video.so is in none of /"+strings.Join(folders, ", /")+": install mesa-amdgpu-va-drivers, or mesa-va-drivers")
	}
	for _, file := range s.survey.Loaded {
		// libva.so.2.2200.0 is VA-API 1.22.
		rest, ok := strings.CutPrefix(path.Base(file), "libva.so.2.")
		number, _, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(number); ok && err == nil && n < 2200 {
			list = append(list, fmt.Sprintf("libva is of VA-API 1.%d; rocJPEG of ROCm 7.13 and newer needs 1.22", n/100))
		}
	}
	return list
}
