//go:build cgo && linux

package native_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// headersEnv names folders of the vendors' headers, beside those where they are
// installed.
const headersEnv = "MICROTOME_VENDOR_HEADERS"

// declared is what a file of ours writes down from a vendor's headers: values, by
// our name and theirs, and the functions of its lists.
type declared struct {
	ours, theirs string // what is included
	flags        []string
	calls        string // prefix of the functions that the header has
	values       [][2]string
}

func declarations() []declared {
	prop := func(field string) string { return "offsetof(hipDeviceProp_tR0600, " + field + ")" }
	hip := []string{"-D__HIP_PLATFORM_AMD__"}
	return []declared{
		{"hip.h", "hip/hip_runtime_api.h", hip, "hip[A-Z]", [][2]string{
			{"HIP_OUT_OF_MEMORY", "hipErrorOutOfMemory"}, {"HIP_NO_DEVICE", "hipErrorNoDevice"}, {"HIP_NO_BINARY", "hipErrorNoBinaryForGpu"},
			{"HIP_SET_ON_ACTIVE", "hipErrorSetOnActiveProcess"}, {"HIP_REGISTERED", "hipErrorHostMemoryAlreadyRegistered"},
			{"HIP_STREAM_NON_BLOCKING", "hipStreamNonBlocking"}, {"HIP_HOST_REGISTER_PORTABLE", "hipHostRegisterPortable"},
			{"HIP_SCHEDULE_BLOCKING_SYNC", "hipDeviceScheduleBlockingSync"},
			{"HIP_PROPERTIES > 1472", "sizeof(hipDeviceProp_tR0600) == 1472"}, {"HIP_NAME", prop("name")}, {"HIP_MEMORY", prop("totalGlobalMem")},
			{"HIP_MULTIPROCESSORS", prop("multiProcessorCount")}, {"HIP_PCI_BUS", prop("pciBusID")}, {"HIP_PCI_DEVICE", prop("pciDeviceID")},
			{"HIP_PCI_DOMAIN", prop("pciDomainID")}, {"HIP_ARCH", prop("gcnArchName")},
			// Of the fake's own.
			{"1", "hipErrorInvalidValue"}, {"101", "hipErrorInvalidDevice"}, {"200", "hipErrorInvalidImage"}, {"301", "hipErrorFileNotFound"},
			{"400", "hipErrorInvalidHandle"}, {"500", "hipErrorNotFound"}, {"712", "hipErrorHostMemoryAlreadyRegistered"},
			{"713", "hipErrorHostMemoryNotRegistered"}, {"308", prop("warpSize")}, {"256", prop("uuid")},
		}},
		{"hip.h", "hip/hiprtc.h", hip, "hiprtc", [][2]string{{"0", "HIPRTC_SUCCESS"}}},
		{"hip.h", "rocjpeg/rocjpeg.h", hip, "rocJpeg", [][2]string{
			{"ROCJPEG_OUT_OF_MEMORY", "ROCJPEG_STATUS_OUTOF_MEMORY"}, {"ROCJPEG_BACKEND_HARDWARE", "ROCJPEG_BACKEND_HARDWARE"},
			{"ROCJPEG_OUTPUT_NATIVE", "ROCJPEG_OUTPUT_NATIVE"}, {"ROCJPEG_CSS_444", "ROCJPEG_CSS_444"}, {"ROCJPEG_CSS_440", "ROCJPEG_CSS_440"},
			{"ROCJPEG_CSS_422", "ROCJPEG_CSS_422"}, {"ROCJPEG_CSS_420", "ROCJPEG_CSS_420"}, {"ROCJPEG_CSS_411", "ROCJPEG_CSS_411"},
			{"ROCJPEG_CSS_400", "ROCJPEG_CSS_400"}, {"sizeof(RocJpegImage)", "sizeof(RocJpegImage)"},
			{"offsetof(RocJpegImage, pitch)", "offsetof(RocJpegImage, pitch)"}, {"sizeof(RocJpegDecodeParams)", "sizeof(RocJpegDecodeParams)"},
			{"offsetof(RocJpegDecodeParams, left)", "offsetof(RocJpegDecodeParams, crop_rectangle.left)"},
			{"offsetof(RocJpegDecodeParams, bottom)", "offsetof(RocJpegDecodeParams, crop_rectangle.bottom)"},
			{"offsetof(RocJpegDecodeParams, width)", "offsetof(RocJpegDecodeParams, target_dimension.width)"},
			{"offsetof(RocJpegDecodeParams, height)", "offsetof(RocJpegDecodeParams, target_dimension.height)"},
			// Of the fake's own.
			{"-1", "ROCJPEG_STATUS_NOT_INITIALIZED"}, {"-2", "ROCJPEG_STATUS_INVALID_PARAMETER"}, {"-3", "ROCJPEG_STATUS_BAD_JPEG"},
			{"-4", "ROCJPEG_STATUS_JPEG_NOT_SUPPORTED"}, {"-11", "ROCJPEG_STATUS_RUNTIME_ERROR"}, {"-12", "ROCJPEG_STATUS_NOT_IMPLEMENTED"},
		}},
		{"cuda.c", "cuda.h", nil, "cu[A-Z]", [][2]string{
			{"CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY"}, {"CU_ATTR_MULTIPROCESSORS", "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT"},
			{"CU_ATTR_PCI_BUS", "CU_DEVICE_ATTRIBUTE_PCI_BUS_ID"}, {"CU_ATTR_PCI_DEVICE", "CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID"},
			{"CU_ATTR_PCI_DOMAIN", "CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID"}, {"CU_ATTR_MAJOR", "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"},
			{"CU_ATTR_MINOR", "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR"}, {"CU_STREAM_NON_BLOCKING", "CU_STREAM_NON_BLOCKING"},
			{"CU_HOST_REGISTER_PORTABLE", "CU_MEMHOSTREGISTER_PORTABLE"}, {"CU_CTX_SCHED_BLOCKING_SYNC", "CU_CTX_SCHED_BLOCKING_SYNC"},
			{"sizeof(CUdeviceptr)", "sizeof(CUdeviceptr)"}, {"sizeof(CUdevice)", "sizeof(CUdevice)"},
			{"201", "CUDA_ERROR_INVALID_CONTEXT"}, {"218", "CUDA_ERROR_INVALID_PTX"}, {"500", "CUDA_ERROR_NOT_FOUND"},
		}},
		{"cuda.c", "nvjpeg.h", nil, "nvjpeg", [][2]string{
			{"NVJPEG_BACKEND_HARDWARE", "NVJPEG_BACKEND_HARDWARE"}, {"NVJPEG_OUTPUT_YUV", "NVJPEG_OUTPUT_YUV"}, {"NVJPEG_CSS_444", "NVJPEG_CSS_444"},
			{"sizeof(nvjpegImage_t)", "sizeof(nvjpegImage_t)"}, {"offsetof(nvjpegImage_t, pitch)", "offsetof(nvjpegImage_t, pitch)"},
			{"3", "NVJPEG_STATUS_BAD_JPEG"}, {"5", "NVJPEG_STATUS_ALLOCATOR_FAILURE"}, {"6", "NVJPEG_STATUS_EXECUTION_FAILED"},
		}},
	}
}

// What we write down from the vendors' headers is what they say, where they are.
func TestDeclarationsAreTheHeaders(t *testing.T) {
	var folders []string
	for _, dir := range append(filepath.SplitList(os.Getenv(headersEnv)), os.Getenv("ROCM_PATH")+"/include", "/opt/rocm/include",
		os.Getenv("CUDA_HOME")+"/include", "/usr/local/cuda/include") {
		if _, err := os.Stat(dir); err == nil && dir != "/include" {
			folders = append(folders, "-I"+dir)
		}
	}
	for _, d := range declarations() {
		t.Run(d.theirs, func(t *testing.T) {
			if !slices.ContainsFunc(folders, func(f string) bool { _, err := os.Stat(filepath.Join(f[2:], d.theirs)); return err == nil }) {
				t.Skipf("NOT CHECKED against %s: it is not here; name its folder in %s", d.theirs, headersEnv)
			}
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			ours := valuesOf(t, d.ours, d.values, 0, nil, []string{"-I" + here, "-w"})
			theirs := valuesOf(t, d.theirs, d.values, 1, called(t, d), slices.Concat(folders, d.flags, []string{"-w"}))
			for i, v := range d.values {
				if ours[i] != theirs[i] {
					t.Errorf("%s is %s, %s is %s", v[0], ours[i], v[1], theirs[i])
				}
			}
		})
	}
}

// called are the functions of a file's lists that the header declares.
func called(t *testing.T, d declared) (names []string) {
	t.Helper()
	text, err := os.ReadFile(d.ours)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\s+X\((`+d.calls+`\w*),`).FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	if len(names) < 6 {
		t.Fatalf("%s calls only %q", d.ours, names)
	}
	return names
}

// valuesOf are the values of expressions where a file is included, which must
// declare the functions.
func valuesOf(t *testing.T, include string, values [][2]string, column int, functions, flags []string) []string {
	t.Helper()
	var src strings.Builder
	fmt.Fprintf(&src, "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include \"%s\"\n", include)
	src.WriteString("int main(void) {\n")
	for _, f := range functions {
		fmt.Fprintf(&src, "  (void)sizeof(&%s);\n", f)
	}
	for _, v := range values {
		fmt.Fprintf(&src, "  printf(\"%%lld\\n\", (long long)(%s));\n", v[column])
	}
	src.WriteString("  return 0;\n}\n")
	dir := t.TempDir()
	file := filepath.Join(dir, "values.c")
	if err := os.WriteFile(file, []byte(src.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	// Nothing of the file is called, and what it needs is left out.
	args := append([]string{"-std=gnu11", "-O1", "-fPIE", "-o", filepath.Join(dir, "values"), file}, flags...)
	args = append(args, "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all")
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", include, err, out)
	}
	out, err := exec.Command(filepath.Join(dir, "values")).Output()
	if err != nil {
		t.Fatalf("%s: %v", include, err)
	}
	return strings.Fields(string(out))
}
