//go:build cgo && linux

package native

/*
#include <stdlib.h>
#include "vendor.h"
*/
import "C"

import (
	"embed"
	"strconv"
	"strings"
	"unsafe"
)

// kernelsPTX is made by `make kernels`; drivers compile it for any GPU from
// sm_75 on.
//
//go:embed kernels_sm_75.ptx
var kernelsPTX string

// codeObjects are AMD's machine code, a file for each architecture, made by `make
// kernels` too. They name no features: one runs with any setting of XNACK and SRAMECC.
//
//go:embed kernels/*.co
var codeObjects embed.FS

//go:embed kernels.h
var kernelsHeader string

//go:embed kernels.cu
var kernelsSource string

// codeObject is the machine code for an architecture, nil when there is none.
func codeObject(arch string) []byte {
	b, err := codeObjects.ReadFile("kernels/" + arch + ".co")
	if err != nil {
		return nil
	}
	return b
}

// runtimeCompiler names what compiles the kernels for an AMD GPU without a code
// object.
const runtimeCompiler = "hipRTC"

// kernelsFor says what the kernels were compiled for, and whether a device runs
// them: drivers compile PTX for all that came later, and hipRTC for any AMD GPU.
func kernelsFor(arch string) (target string, fit bool) {
	if strings.HasPrefix(arch, "gfx") {
		if codeObject(arch) == nil {
			return runtimeCompiler, true
		}
		return arch, true
	}
	_, rest, _ := strings.Cut(kernelsPTX, ".target ")
	target, _, _ = strings.Cut(rest, "\n")
	least, err := strconv.Atoi(strings.TrimPrefix(target, "sm_"))
	has, err2 := strconv.Atoi(strings.TrimPrefix(arch, "sm_"))
	return target, err == nil && err2 == nil && has >= least
}

// kernelsOf are the kernels for an architecture: PTX, a code object, or the source.
// They are in C's memory until forget is called.
func kernelsOf(arch string) (k C.mt_kernels, forget func()) {
	if !strings.HasPrefix(arch, "gfx") {
		text := C.CString(kernelsPTX)
		k.image, k.bytes = unsafe.Pointer(text), C.size_t(len(kernelsPTX))
		return k, func() { C.free(unsafe.Pointer(text)) }
	}
	if object := codeObject(arch); object != nil {
		k.image, k.bytes = C.CBytes(object), C.size_t(len(object))
		image := k.image
		return k, func() { C.free(image) }
	}
	k.source = C.CString(oneSource())
	source := k.source
	return k, func() { C.free(unsafe.Pointer(source)) }
}

// oneSource is the kernels as one text that includes nothing: hipRTC has no stdint.h,
// and some of its versions have its names and some have not.
func oneSource() string {
	var b strings.Builder
	for _, t := range [][2]string{
		{"uint8_t", "unsigned char"}, {"uint16_t", "unsigned short"}, {"int32_t", "int"}, {"uint32_t", "unsigned int"}, {"uint64_t", "unsigned long"},
	} {
		b.WriteString("typedef " + t[1] + " mt_" + t[0] + ";\n#define " + t[0] + " mt_" + t[0] + "\n")
	}
	header := strings.Replace(kernelsHeader, "#include <stdint.h>\n", "", 1)
	b.WriteString(strings.Replace(kernelsSource, "#include \"kernels.h\"\n", header, 1))
	return b.String()
}
