package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/microtome/microtome/decode/gpu"
	"github.com/microtome/microtome/decode/gpu/wire"
)

// gpuVendor is a vendor whose GPUs an engine knows, and what helps there.
type gpuVendor struct {
	name, title string
	pci         string // its number on the bus
	// missing is what to do when no library of a role is there, broken when one is
	// there and can't be opened.
	missing, broken map[string]string
	// codes are the remedies for what the driver says.
	codes    map[int]string
	noDevice string
	tool     string // that says how a GPU is
}

// gpuVendors lists the vendors in the order in which they are examined.
func gpuVendors() []gpuVendor {
	const noDevice = "see that nvidia-smi lists a GPU here, that a container is given one, and that CUDA_VISIBLE_DEVICES does not hide it"
	return []gpuVendor{{
		name: "nvidia", title: "NVIDIA", pci: "0x10de", noDevice: noDevice, tool: "nvidia-smi",
		missing: map[string]string{
			"driver":  "install NVIDIA's driver; a container gets it from the host by the NVIDIA container toolkit (docker-compose.nvidia.yml)",
			"decoder": "install nvJPEG (it is in the CUDA toolkit, and in the PyPI wheel nvidia-nvjpeg) and name the folder that has it by --device-libraries",
		},
		broken: map[string]string{
			"driver":  "install the driver anew, for this system",
			"decoder": "what nvJPEG needs beside it is the driver's libnvcuvid.so.1 (in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility,video) and libgcc_s.so.1",
		},
		codes: map[int]string{
			100: noDevice,
			46:  "another process holds the GPU alone: see nvidia-smi",
			221: "the driver's compiler of kernels, libnvidia-ptxjitcompiler.so.1, is not here (in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility,video)",
			802: "the system is not ready: GPUs that are linked by NVSwitch need nvidia-fabricmanager to run",
			803: "libcuda.so.1 is another version's than the driver in the kernel: start the host anew, or the container with the host's own libcuda",
			804: "this GPU can't have a newer libcuda.so.1 than its driver: leave out CUDA's folder compat",
		},
	}, amdVendor()}
}

func amdVendor() gpuVendor {
	const noDevice = "see that rocminfo lists a GPU here, that /dev/kfd and /dev/dri are there and may be opened " +
		"(a container is given both, and the groups that own them: docker-compose.rocm.yml), and that HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES do not hide it"
	return gpuVendor{
		name: "amd", title: "AMD", pci: "0x1002", noDevice: noDevice, tool: "amd-smi",
		missing: map[string]string{
			"driver":  "install HIP's runtime of ROCm 7 (a container needs it inside: docker-compose.rocm.yml), or name the folder that has it by --device-libraries",
			"decoder": "install rocJPEG of ROCm 7 (package rocjpeg), or name the folder that has it by --device-libraries",
		},
		broken: map[string]string{
			"driver":  "install HIP's runtime anew, for this system and all of it from one ROCm",
			"decoder": "what rocJPEG needs beside it is HIP of the same ROCm, libva and libva-drm (1.22 or newer for ROCm 7.13 on), and libdrm_amdgpu",
		},
		codes: map[int]string{
			100: noDevice,
			209: "the code object for this GPU does not load: see that HSA_OVERRIDE_GFX_VERSION is not set",
			-1:  "rocJPEG can't start VA-API on this GPU: install AMD's Mesa driver for VA-API (mesa-amdgpu-va-drivers) that fits its libva, and see that LIBVA_DRIVERS_PATH names no other",
			-2:  "rocJPEG does not find this GPU's render node: give the process /dev/dri/renderD* of it, and update rocJPEG",
			-10: "VCN of this GPU, or its VA-API driver, decodes no JPEG: name another GPU by --device, or decode on the CPU",
		},
	}
}

// advise says what went wrong and what to do about it.
func (v *gpuVendor) advise(t *gpu.Trouble, s *gpu.Survey, found *gpu.Found, onBus int) (what, remedy string) {
	what = t.Error()
	switch {
	case t.Step == gpu.StepBuild:
		return v.noEngine()
	case t.Silent:
		return what + " (" + stepText(t.Step) + ")", "if the driver is only slow to start, allow more by --timeout; else see what " + v.tool + " says"
	case t.Died:
		return what + " (" + stepText(t.Step) + ")", "a library of the vendor's crashes here: try another version by --device-libraries"
	case t.Step == gpu.StepLibraries:
		return v.library(t, s, onBus)
	case t.Step == gpu.StepDriver:
		return what, cmp.Or(v.codes[t.Code], "see what "+v.tool+" says")
	case t.Step == gpu.StepDevice:
		return what, cmp.Or(v.codes[t.Code], "see with "+v.tool+" whether it is well")
	case found != nil && found.Engines == 0:
		return what, "name a GPU that has one by --device, or decode on the CPU"
	case found != nil && !found.Fit:
		return what, fmt.Sprintf("it is %s, and the kernels are for GPUs from %s on: name another by --device, or decode on the CPU", found.Arch, found.Kernels)
	case t.Step == gpu.StepOpen && t.Kind == wire.Memory:
		return what, "see with " + v.tool + " what holds the GPU's memory"
	case t.Step == gpu.StepProof:
		return what, "decode on the CPU, or try another version of the driver and of the decoder (--device-libraries)"
	}
	return what, cmp.Or(v.codes[t.Code], "see what "+v.tool+" says")
}

func (v *gpuVendor) noEngine() (what, remedy string) {
	if runtime.GOOS != "linux" {
		return "this binary is for " + runtime.GOOS + " and has no GPU engine", "run Microtome on Linux"
	}
	return "this binary was built without a C compiler and has no GPU engine", "build it with gcc there and CGO_ENABLED=1"
}

// library finds the library that is to blame.
func (v *gpuVendor) library(t *gpu.Trouble, s *gpu.Survey, onBus int) (what, remedy string) {
	for _, l := range s.Libraries {
		switch {
		case l.Why == "":
			continue
		case l.Absent:
			what = filepath.Base(l.Looked[0]) + " was not found (" + lookedText(l.Looked) + ")"
			if l.Role == "driver" && onBus == 0 {
				return "this host has no " + v.title + " GPU: none is on its PCI bus, and " + what, "decode on the CPU, as serve does without --device"
			}
			return what, v.missing[l.Role]
		case l.File == "":
			return "a library can't be opened: " + l.Why, v.broken[l.Role]
		}
		return l.Why, "it is too old, or another library: take another version of it"
	}
	return t.Error(), ""
}

// lookedText says where a library was looked for, in this order. A name without a
// folder was given to the system's loader.
func lookedText(looked []string) string {
	text := "looked for "
	for i, l := range looked {
		if i > 0 {
			text += ", "
		}
		text += l
		last := i == len(looked)-1 || strings.Contains(looked[i+1], "/")
		if !strings.Contains(l, "/") && last {
			text += " on the loader's path"
		}
	}
	return text
}

func stepText(s gpu.Step) string {
	return map[gpu.Step]string{
		gpu.StepLibraries: "while its libraries were opened", gpu.StepDriver: "while the driver started",
		gpu.StepDevice: "while a device was described", gpu.StepOpen: "while the engine was opened",
		gpu.StepProof: "during the proof",
	}[s]
}
